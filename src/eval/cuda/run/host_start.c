/* Starting a CUDA runner, and the spares: one is kept warm, since a context takes a third of a
 * second, and a runner whose candidate left it whole goes back among them. */
#include "eval/cuda/run/host.h"

#include "base/file.h"
#include "base/mem.h"
#include "eval/cuda/driver/device.h"
#include "eval/cuda/driver/spawn.h"
#include "eval/data/timeline.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPARES = 4, ARGUMENTS_MOST = 24, STARTS_MOST = 3 };

/* ---- the two pages ---- */

static void *open_page(const char *name, size_t bytes, int *fd)
{
    *fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0 || ftruncate(*fd, (off_t)bytes) != 0)
        return MAP_FAILED;
    (void)fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
}

static int open_pages(struct gpu_host *host, int *control_fd, int *report_fd, struct err *err)
{
    char path[40];
    int writable = -1;
    void *control = open_page("twagent-control", sizeof *host->control, &writable);
    void *report = open_page("twagent-report", sizeof *host->report, report_fd);
    host->control = control != MAP_FAILED ? control : NULL;
    host->report = report != MAP_FAILED ? report : NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", writable);
    *control_fd = writable >= 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (writable >= 0)
        close(writable);
    if (host->control == NULL || host->report == NULL || *control_fd < 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "runner: pages");
    return 0;
}

/* ---- the process ---- */

static ino_t inode_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

static int start(struct gpu_host *host, const struct lane_facts *lane, const struct region *region,
                 const char *const *prefix, struct err *err)
{
    const char *argv[ARGUMENTS_MOST + 4], *env[CUDA_ENV_MOST];
    size_t count = 0;
    int control = -1, report = -1, pipe_fds[2] = {-1, -1}, result = -1;
    while (prefix != NULL && prefix[count] != NULL && count < ARGUMENTS_MOST) {
        argv[count] = prefix[count];
        count++;
    }
    argv[count++] = file_program_path();
    argv[count++] = "runner";
    argv[count++] = "cuda";
    argv[count] = NULL;
    host->go = eventfd(0, EFD_CLOEXEC);
    host->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host->go < 0 || host->done < 0 || pipe2(pipe_fds, O_CLOEXEC) != 0) {
        err_set_errno(err, ERR_ENVIRONMENT, errno, "runner: descriptors");
    } else if (open_pages(host, &control, &report, err) == 0 && host->control != NULL) {
        host->control->parent = getpid();
        host->control->supervised = prefix != NULL;
        host->control->timeline = timeline_on();
        host->control->gpu_index = lane->gpu_index;
        host->control->inputs_bytes = region->inputs_bytes;
        host->control->outputs_bytes = region->outputs_bytes;
        int errors = pipe_fds[1];
        const int standard[] = {-1, prefix != NULL ? errors : -1, errors};
        const int fds[] = {
            control, region->inputs_read_fd, region->outputs_fd, host->go, host->done, report};
        const struct spawn_spec spec = {.argv = argv,
                                        .env = cuda_environment(env),
                                        .folder = ".",
                                        .fds = fds,
                                        .fd_count = sizeof fds / sizeof fds[0]};
        result = spawn(&spec, standard, &host->subject.pid, &host->pidfd, err);
    }
    host->errors = pipe_fds[0];
    if (host->errors >= 0)
        fcntl(host->errors, F_SETFL, O_NONBLOCK);
    const int mine[] = {pipe_fds[1], control, report};
    for (size_t i = 0; i < sizeof mine / sizeof mine[0]; i++)
        if (mine[i] >= 0)
            close(mine[i]);
    return result;
}

int gpu_host_start(const struct lane_facts *lane, const struct region *region,
                   const char *const *prefix, struct gpu_host **out, struct err *err)
{
    struct gpu_host *host = MEM_NEW(struct gpu_host);
    host->pidfd = host->errors = host->go = host->done = -1;
    host->region = region;
    host->inputs_inode = inode_of(region->inputs_fd);
    host->outputs_inode = inode_of(region->outputs_fd);
    host->facts = &lane->facts;
    if (start(host, lane, region, prefix, err) != 0) {
        gpu_host_close(host);
        return -1;
    }
    *out = host;
    return 0;
}

/* ---- spares ---- */

static struct gpu_host *spares[SPARES]; /* measuring thread alone */

static bool fits(const struct gpu_host *spare, const struct lane_facts *lane,
                 const struct region *region)
{
    return spare->region == region && spare->inputs_inode == inode_of(region->inputs_fd) &&
           spare->outputs_inode == inode_of(region->outputs_fd) &&
           spare->control->inputs_bytes == region->inputs_bytes &&
           spare->control->outputs_bytes == region->outputs_bytes &&
           spare->control->gpu_index == lane->gpu_index;
}

void gpu_host_discard(void)
{
    for (int i = 0; i < SPARES; i++) {
        gpu_host_close(spares[i]);
        spares[i] = NULL;
    }
}

static struct gpu_host *take_spare(const struct lane_facts *lane, const struct region *region,
                                   bool used)
{
    for (int i = 0; i < SPARES; i++)
        if (spares[i] != NULL && fits(spares[i], lane, region) && spares[i]->used == used) {
            struct gpu_host *found = spares[i];
            spares[i] = NULL;
            return found;
        }
    return NULL;
}

/* A fresh one that fits is there, warm or on its way; those of other regions hold memory for
 * nothing. */
static void ensure_spare(const struct lane_facts *lane, const struct region *region)
{
    struct err ignored;
    int place = -1;
    for (int i = 0; i < SPARES; i++) {
        bool kept = spares[i] != NULL && fits(spares[i], lane, region);
        if (kept && !spares[i]->used)
            return;
        if (kept)
            continue;
        gpu_host_close(spares[i]);
        spares[i] = NULL;
        place = i;
    }
    if (place < 0)
        return;
    if (gpu_host_start(lane, region, NULL, &spares[place], &ignored) != 0)
        spares[place] = NULL; /* the next open says why */
}

void gpu_host_warm(const struct lane_facts *lane, const struct region *region)
{
    ensure_spare(lane, region);
}

void gpu_host_give_back(struct gpu_host *host)
{
    for (int i = 0; i < SPARES && host != NULL && !host->reaped && !host->spoilt; i++)
        if (spares[i] == NULL) {
            spares[i] = host;
            return;
        }
    gpu_host_close(host);
}

void gpu_host_settle(void)
{
    struct err ignored;
    for (int i = 0; i < SPARES; i++)
        if (spares[i] != NULL && gpu_host_wait_warm(spares[i], &ignored) != 0) {
            gpu_host_close(spares[i]);
            spares[i] = NULL;
        }
}

static int warm_one(const struct lane_facts *lane, const struct region *region, bool fresh,
                    struct gpu_host **host, struct err *err)
{
    struct gpu_host *found = fresh ? NULL : take_spare(lane, region, true);
    if (found == NULL)
        found = take_spare(lane, region, false);
    for (int tries = 0; tries < STARTS_MOST; tries++) {
        if (found == NULL && gpu_host_start(lane, region, NULL, &found, err) != 0)
            return -1;
        if (gpu_host_wait_warm(found, err) == 0) {
            *host = found;
            return 0;
        }
        gpu_host_close(found); /* killed before it held anything of a candidate's, or no GPU */
        found = NULL;
    }
    return -1;
}

int gpu_host_open(const struct lane_facts *lane, const struct region *region, const char *artifact,
                  const struct program *program, bool fresh, struct gpu_host **out, struct err *err)
{
    struct gpu_host *host = NULL;
    if (warm_one(lane, region, fresh, &host, err) != 0)
        return -1;
    if (!fresh) /* else what is timed next would wait for it */
        ensure_spare(lane, region);
    host->facts = &lane->facts;
    host->program = *program;
    if (gpu_host_load(host, artifact, err) != 0) {
        gpu_host_close(host);
        return -1;
    }
    *out = host;
    return 0;
}
