/* Starting a runner: descriptors, environment, process group; and its spares. */
#include "eval/cpu/host.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "eval/cpu/cpu.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ENV_MAX = 32,
    SPARES = 2,
    STARTS_MOST = 3,
    CONTROL_BYTES = (sizeof(struct control) + 4095) / 4096 * 4096
};
#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

/* What OpenMP and BLAS libraries read. Passive: a helper thread that spins after its share would
 * hold the core on which this side must wake. */
static size_t environment(const struct lane_facts *lane, const char *const *more,
                          struct arena *arena, const char *env[ENV_MAX])
{
    struct buf places;
    size_t count = 0;
    buf_init(&places, 1024);
    for (size_t i = 0; i < lane->core_count; i++)
        buf_addf(&places, "%s{%d}", i > 0 ? "," : "", lane->cores[i]);
    int cores = (int)lane->core_count;
    env[count++] = "LC_ALL=C";
    env[count++] = arena_printf(arena, "OMP_NUM_THREADS=%d", cores);
    env[count++] = arena_printf(arena, "OMP_THREAD_LIMIT=%d", 4 * cores);
    env[count++] = "OMP_DYNAMIC=false";
    env[count++] = "OMP_PROC_BIND=close";
    env[count++] = arena_printf(arena, "OMP_PLACES=%s", buf_text(&places));
    env[count++] = "OMP_WAIT_POLICY=passive";
    env[count++] = arena_printf(arena, "OPENBLAS_NUM_THREADS=%d", cores);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    env[count++] = "ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:"
                   "handle_sigill=0:detect_leaks=0:allocator_may_return_null=1";
#endif
    for (size_t i = 0; more != NULL && more[i] != NULL && count < ENV_MAX - 1; i++)
        env[count++] = more[i];
    env[count] = NULL;
    buf_free(&places);
    return count;
}

/* Sealed, so that nobody can make the page smaller under our feet. */
static int make_control(struct host *host, int *readable, struct err *err)
{
    int fd = memfd_create("twagent-control", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, CONTROL_BYTES) != 0)
        goto fail;
    void *page = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        goto fail;
    host->control = page;
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    (void)fcntl(fd, F_ADD_SEALS, 0x0010 /* F_SEAL_FUTURE_WRITE, Linux 5.1 */);
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    *readable = open(path, O_RDONLY | O_CLOEXEC);
    if (*readable < 0)
        goto fail;
    close(fd);
    return 0;
fail:
    err_set_errno(err, ERR_ENVIRONMENT, errno, "runner: control page");
    if (fd >= 0)
        close(fd);
    return -1;
}

static void fill_control(struct host *host, const struct lane_facts *lane)
{
    struct control *control = host->control;
    control->parent = getpid();
    control->core_count = (uint32_t)lane->core_count;
    for (size_t i = 0; i < lane->core_count && i < WIRE_CORES_MAX; i++)
        control->cores[i] = lane->cores[i];
    control->inputs_bytes = host->region->inputs_bytes;
    control->outputs_bytes = host->region->outputs_bytes;
    control->alias_count = (uint32_t)host->region->alias_count;
    memcpy(control->aliases, host->region->aliases, sizeof control->aliases);
    control->alias_end = region_alias_end(host->region);
    /* malloc() reserves 128 MiB of addresses for each thread's arena. */
    control->memory_bytes = 4 * GIB + 256 * MIB * lane->core_count;
}

static char *join_env(const char *const *env)
{
    struct buf text;
    buf_init(&text, 1 << 16);
    for (size_t i = 0; env != NULL && env[i] != NULL; i++)
        buf_addf(&text, "%s\n", env[i]);
    buf_add_text(&text, "");
    char *joined = mem_strdup(buf_text(&text));
    buf_free(&text);
    return joined;
}

static ino_t inode_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

int host_start(const struct lane_facts *lane, const struct region *region, const char *const *env,
               struct host **out, struct err *err)
{
    struct host *host = MEM_NEW(struct host);
    int control = -1, pipe_fds[2] = {-1, -1}, result = -1;
    host->pidfd = host->errors = -1;
    host->region = region;
    host->others_ns = -1;
    host->inputs_inode = inode_of(region->inputs_fd);
    host->outputs_inode = inode_of(region->outputs_fd);
    host->env = join_env(env);
    host->go = eventfd(0, EFD_CLOEXEC);
    host->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host->go < 0 || host->done < 0 || pipe2(pipe_fds, O_CLOEXEC) != 0) {
        err_set_errno(err, ERR_ENVIRONMENT, errno, "runner: descriptors");
    } else if (make_control(host, &control, err) == 0) {
        const char *const argv[] = {file_program_path(), "runner", "cpu", NULL};
        const char *environ_list[ENV_MAX];
        struct arena *arena = arena_new();
        fill_control(host, lane);
        environment(lane, env, arena, environ_list);
        const int fds[] = {control, region->inputs_read_fd, region->outputs_fd, host->go,
                           host->done};
        const struct spawn_spec spec = {
            .argv = argv, .env = environ_list, .fds = fds, .fd_count = sizeof fds / sizeof fds[0]};
        result = spawn(&spec, (int[]){-1, -1, pipe_fds[1]}, &host->subject.pid, &host->pidfd, err);
        arena_free(arena);
    }
    host->errors = pipe_fds[0];
    if (host->errors >= 0)
        fcntl(host->errors, F_SETFL, O_NONBLOCK);
    if (pipe_fds[1] >= 0)
        close(pipe_fds[1]);
    if (control >= 0)
        close(control);
    if (result != 0) {
        host_close(host);
        return -1;
    }
    *out = host;
    return 0;
}

/* ---- spares ---- */

static struct host *spares[SPARES]; /* measuring thread alone */

static bool fits(const struct host *spare, const struct region *region, const char *env)
{
    return spare->region == region && spare->inputs_inode == inode_of(region->inputs_fd) &&
           spare->outputs_inode == inode_of(region->outputs_fd) &&
           spare->control->inputs_bytes == region->inputs_bytes &&
           spare->control->outputs_bytes == region->outputs_bytes && strcmp(spare->env, env) == 0;
}

static bool same_cores(const struct host *spare, const struct lane_facts *lane)
{
    if (spare->control->core_count != lane->core_count)
        return false;
    for (size_t i = 0; i < lane->core_count; i++)
        if (spare->control->cores[i] != lane->cores[i])
            return false;
    return true;
}

void cpu_runner_discard_spares(void)
{
    for (int i = 0; i < SPARES; i++) {
        host_close(spares[i]);
        spares[i] = NULL;
    }
}

/* A spare for another region holds that one's memory: away with it. */
static void replace_spare(const struct lane_facts *lane, const struct region *region,
                          const char *const *env)
{
    struct err ignored;
    int place = 0;
    for (int i = 0; i < SPARES; i++) {
        if (spares[i] != NULL && spares[i]->region != region) {
            host_close(spares[i]);
            spares[i] = NULL;
        }
        if (spares[i] == NULL)
            place = i;
    }
    host_close(spares[place]);
    spares[place] = NULL;
    if (host_start(lane, region, env, &spares[place], &ignored) != 0)
        spares[place] = NULL; /* the next open() says why */
}

int host_take(const struct lane_facts *lane, const struct region *region, const char *const *env,
              struct host **host, struct err *err)
{
    char *joined = join_env(env);
    struct host *found = NULL;
    for (int i = 0; i < SPARES && found == NULL; i++)
        if (spares[i] != NULL && fits(spares[i], region, joined) && same_cores(spares[i], lane)) {
            found = spares[i];
            spares[i] = NULL;
        }
    mem_free(joined);
    if (found != NULL && host_wait_warm(found, err) != 0) {
        host_close(found); /* somebody killed it: start another */
        found = NULL;
    }
    for (int tries = 0; found == NULL && tries < STARTS_MOST; tries++) {
        if (host_start(lane, region, env, &found, err) != 0)
            return -1;
        if (host_wait_warm(found, err) != 0) {
            host_close(found); /* killed before it held anything of the candidate's */
            found = NULL;
        }
    }
    if (found == NULL)
        return -1;
    *host = found;
    replace_spare(lane, region, env);
    return 0;
}

void host_settle(void)
{
    struct err ignored;
    for (int i = 0; i < SPARES; i++)
        if (spares[i] != NULL && host_wait_warm(spares[i], &ignored) != 0) {
            host_close(spares[i]);
            spares[i] = NULL;
        }
}
