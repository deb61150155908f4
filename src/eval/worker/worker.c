/* eval/worker: the process around the requests. */
#include "base/file.h"
#include "base/mem.h"
#include "base/quota.h"
#include "eval/data/timeline.h"
#include "eval/worker/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Where builds go. A private folder is locked as long as its worker lives; one
 * that a worker left behind when it was killed is swept by the next one that starts. */

static const char prefix[] = "twagent-worker-";
enum { YOUNG_S = 60 }; /* made, and perhaps not locked yet */

static bool is_stale(int folder)
{
    struct stat status;
    return fstat(folder, &status) == 0 && status.st_uid == geteuid() &&
           time(NULL) - status.st_mtime > YOUNG_S && flock(folder, LOCK_EX | LOCK_NB) == 0;
}

static void sweep(const char *parent)
{
    DIR *entries = opendir(parent);
    if (entries == NULL)
        return;
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        struct err ignored;
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0)
            continue;
        int folder =
            openat(dirfd(entries), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0)
            continue;
        char *path = file_join(parent, entry->d_name);
        if (is_stale(folder) && file_remove_tree(path, &ignored) != 0)
            fprintf(stderr, "twagent worker: %s\n", ignored.message);
        mem_free(path);
        close(folder);
    }
    closedir(entries);
}

static int folder_open(struct worker *worker, struct err *err)
{
    const char *parent = getenv("TMPDIR");
    worker->folder_lock = -1;
    if (worker->options->folder != NULL) {
        worker->folder = mem_strdup(worker->options->folder);
        return file_make_dirs(worker->folder, err);
    }
    parent = parent != NULL && *parent == '/' ? parent : "/tmp";
    sweep(parent);
    char name[sizeof prefix + 6];
    snprintf(name, sizeof name, "%sXXXXXX", prefix);
    worker->folder = file_join(parent, name);
    if (mkdtemp(worker->folder) == NULL)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make a folder in %s", parent);
    worker->own_folder = true;
    worker->folder_lock = open(worker->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (worker->folder_lock >= 0)
        flock(worker->folder_lock, LOCK_EX | LOCK_NB);
    return 0;
}

static void folder_close(struct worker *worker)
{
    struct err ignored;
    if (worker->own_folder && file_remove_tree(worker->folder, &ignored) != 0)
        fprintf(stderr, "twagent worker: %s\n", ignored.message);
    if (worker->own_folder && worker->folder_lock >= 0)
        close(worker->folder_lock);
    mem_free(worker->folder);
}

void request_begin(struct worker *worker, struct request *request, const struct task_type *type,
                   const char *id)
{
    request->worker = worker;
    request->id = id;
    task_start(worker->loop, &request->task, type, worker->input, id);
    list_append(&worker->requests, &request->link);
}

void requests_reap(struct worker *worker)
{
    list_each_safe (link, &worker->requests) {
        struct request *request = container_of(link, struct request, link);
        if (!request->task.finished)
            continue;
        list_remove(link);
        arena_free(request->arena);
        mem_free(request);
    }
}

bool slot_hold(struct slot *slot, struct slots *slots, struct task *owner, unsigned amount)
{
    if (slot->granted || list_linked(&slot->link))
        return slot->granted;
    return slots_acquire(slots, slot, owner, amount);
}

/* --- the lane's cores --- */

static size_t own_cores(int *cores, size_t most)
{
    cpu_set_t set;
    size_t count = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (int core = 0; core < CPU_SETSIZE && count < most; core++)
        if (CPU_ISSET((size_t)core, &set))
            cores[count++] = core;
    return count;
}

/* A job that may use the time of two of sixteen cores would be held after an eighth of each period
 * by sixteen threads, and timed so. */
static size_t within_quota(size_t count)
{
    struct quota quota;
    quota_read(&quota);
    size_t most = quota.cpus >= 1 ? (size_t)quota.cpus : 1;
    return quota.cpus > 0 && most < count ? most : count;
}

static int choose_cores(struct worker *worker, struct err *err)
{
    struct lane_facts *lane = &worker->lane;
    enum { MOST = sizeof lane->cores / sizeof lane->cores[0] };
    int own[MOST];
    size_t count = own_cores(own, MOST);
    if (worker->options->cores == NULL) {
        memcpy(lane->cores, own, sizeof own);
        lane->core_count = within_quota(count);
    } else if (!input_parse_cores(worker->options->cores, lane->cores, MOST, &lane->core_count)) {
        return err_set(err, ERR_USAGE, "--cores %s: expected numbers and ranges, as 0-3,6",
                       worker->options->cores);
    }
    for (size_t i = 0; i < lane->core_count; i++) {
        bool found = count == MOST;
        for (size_t k = 0; k < count; k++)
            found = found || own[k] == lane->cores[i];
        if (!found)
            return err_set(err, ERR_USAGE,
                           "--cores: core %d is not ours to use (twagent doctor: cores_used)",
                           lane->cores[i]);
    }
    return lane->core_count > 0 ? 0 : err_set(err, ERR_ENVIRONMENT, "no cores to run on");
}

/* While a host's clock times, no compiler runs, and one or two candidates ahead are all that can be
 * made use of. Each compiler takes some hundred MiB. */
static unsigned ahead_most(const struct worker *worker)
{
    const uint64_t each = UINT64_C(1) << 30;
    size_t cores = worker->lane.core_count, most = AHEAD_MOST;
    uint64_t available = mem_available();
    if (!worker->options->backend->device || cores < AHEAD_LEAST + DEVICE_CORES)
        return AHEAD_LEAST;
    if (most > cores - DEVICE_CORES)
        most = cores - DEVICE_CORES;
    if (available > 0 && most > available / each)
        most = available / each;
    return most > AHEAD_LEAST ? (unsigned)most : AHEAD_LEAST;
}

/* --- beginning and end --- */

static void clean_up(struct worker *worker)
{
    session_close(worker->session);
    problem_free(worker->problem);
    memory_forget(worker);
    arena_free(worker->arena);
    arena_free(worker->lane_arena);
    folder_close(worker);
}

int worker_main(const struct worker_options *options)
{
    struct worker worker = {.options = options, .lane = {.gpu_index = options->gpu_index}};
    struct err err = {0};
    timeline_end("worker.start", timeline_begin());
    list_init(&worker.requests);
    list_init(&worker.memory);
    if (choose_cores(&worker, &err) != 0 || folder_open(&worker, &err) != 0) {
        fprintf(stderr, "twagent worker: %s\n", err.message);
        clean_up(&worker);
        return err_exit_code(err.code);
    }
    slots_init(&worker.sessions, "sessions", READERS_MOST);
    slots_init(&worker.cores, "cores", (unsigned)worker.lane.core_count);
    unsigned spare =
        worker.cores.capacity > DEVICE_CORES ? worker.cores.capacity - DEVICE_CORES : 1;
    slots_init(&worker.compilers, "compilers", spare);
    slots_init(&worker.ahead, "ahead", ahead_most(&worker));
    slots_init(&worker.measure, "measure", 1);
    worker.loop = loop_new();
    input_start(&worker);
    loop_run(worker.loop);
    uint64_t begun = timeline_begin();
    clean_up(&worker);
    timeline_end("worker.close", begun);
    loop_free(worker.loop);
    return 0;
}
