#include "eval/cpu/host.h"

#include "base/clock.h"
#include "base/mem.h"
#include "eval/cpu/alone.h"
#include "eval/cpu/artifact.h"
#include "eval/cpu/cpu.h"
#include "eval/cpu/halt.h"
#include "eval/cpu/hold.h"
#include "eval/cpu/private.h"
#include "process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS       UINT64_C(1000000000)
#define THREADS_MESSAGE "has more than %d threads at once"
enum { LOAD_S = 20, LOAD_OWN_S = 10, HELD_TURNS = 64 }; /* own: of the candidate's own code */

/* ---- its threads ---- */

/* By the kernel's account, whatever the artifact calls what makes them. */
static unsigned count_threads(int pid)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    return stat(path, &status) == 0 && status.st_nlink > 3 ? (unsigned)status.st_nlink - 3 : 0;
}

/* Threads that came and went have used a core. */
static bool others_have_run(struct cpu_host *host)
{
    enum { CLOCK_NS = 2000 };
    int64_t all = clock_cpu_ns(host->base.subject.pid);
    int64_t others =
        all - (int64_t)thread_times(host->base.subject.pid, host->base.subject.pid).cpu_ns;
    int64_t before = host->others_ns;
    host->others_ns = others;
    return all > 0 && before >= 0 && others > before + CLOCK_NS;
}

static void saw_threads(struct cpu_host *host, unsigned count)
{
    host->base.subject.threads =
        count > host->base.subject.threads ? count : host->base.subject.threads;
}

static int look(struct host *host, struct err *err)
{
    if (count_threads(host->subject.pid) > HOLD_THREADS_MOST)
        return err_set(err, ERR_CHILD, THREADS_MESSAGE, HOLD_THREADS_MOST);
    return 0;
}

static void bury(struct host *host)
{
    struct cpu_host *own = (struct cpu_host *)host;
    hold_bury(own->hold);
    own->hold = NULL;
}

static void free_own(struct host *host)
{
    struct cpu_host *own = (struct cpu_host *)host;
    mem_free((void *)(uintptr_t)own->env);
}

const struct host_kind cpu_host_kind = {look, bury, free_own};

/* ---- loading ---- */

static long filters_of(const char *status_path)
{
    char line[256];
    long count = -1;
    FILE *file = fopen(status_path, "re");
    if (file == NULL)
        return -1;
    while (count < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "Seccomp_filters:", 16) == 0)
            count = strtol(line + 16, NULL, 10);
    fclose(file);
    return count;
}

/* Ours, and no other that would answer in its place: nothing of the candidate's has run. */
static int check_filters(struct cpu_host *host, struct err *err)
{
    char path[64];
    struct sandbox_facts facts;
    sandbox_probe(&facts);
    snprintf(path, sizeof path, "/proc/%d/status", host->base.subject.pid);
    long ours = filters_of("/proc/self/status"), theirs = filters_of(path);
    if (!facts.seccomp || ours < 0 || theirs < 0 || theirs == ours + 1)
        return 0;
    host_end(&host->base);
    return err_set(err, ERR_ENVIRONMENT, "the runner has %ld filters of system calls, expected %ld",
                   theirs, ours + 1);
}

/* One OpenMP thread a core, this one on the first; or one thread alone. Whoever makes threads of
 * its own gets all cores for all of them. */
static void bind_first(struct cpu_host *host)
{
    cpu_set_t set;
    int fd = open(host->control->artifact, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    struct artifact_needs needs = artifact_inspect(fd);
    close(fd);
    if (needs.own_threads)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)host->control->cores[0], &set);
    (void)sched_setaffinity(host->base.subject.pid, sizeof set, &set);
}

/* Its group is stopped when this returns, or it has ended. */
static void stop_group(struct cpu_host *host)
{
    const int pid = host->base.subject.pid;
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0)
        if (errno != EINTR)
            return;
    if (info.si_code == CLD_STOPPED)
        (void)waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG);
}

/* What it left stays: a look that was disturbed on a busy machine does not come out so again. Of a
 * process that ended meanwhile nothing is known. NULL: nothing has changed. */
static const char *changed_for_good(const struct cpu_host *host, struct left *now, bool loading)
{
    enum { LOOKS = 3 };
    const int pid = host->base.subject.pid;
    const char *changed = left_change(&host->before, now, loading);
    for (int i = 1; i < LOOKS && changed != NULL; i++)
        changed =
            left_look(pid, &host->places, now) ? left_change(&host->before, now, loading) : NULL;
    return changed;
}

static void look_at(struct cpu_host *host, struct left *left, bool loaded)
{
    const int pid = host->base.subject.pid;
    kill(-pid, SIGSTOP);
    stop_group(host);
    (void)left_look(pid, &host->places, left);
    if (loaded)
        host->spoilt_by_load = changed_for_good(host, left, true);
    kill(-pid, SIGCONT);
}

/* What it is compared with from now on: what was loaded, before its first call. */
static void look_loaded(struct cpu_host *host)
{
    struct left loaded;
    look_at(host, &loaded, true);
    host->own_threads = host->before.threads;
    host->before = loaded;
}

static int load_it(struct cpu_host *host, struct err *err)
{
    unsigned said;
    /* Up to the first word nothing of the candidate's has run. That word is taken before it can. */
    uint64_t deadline_ns = clock_now_ns() + LOAD_S * SECOND_NS;
    if (host_go(&host->base, err) != 0)
        return -1;
    if (host_await(&host->base, 1, deadline_ns, &said, err) != 0) {
        err->code = ERR_ENVIRONMENT;
        return err_wrap(err, "runner");
    }
    if (check_filters(host, err) != 0)
        return -1;
    host->places = left_find(host->base.subject.pid);
    look_at(host, &host->before, false); /* nothing of the candidate's has run */
    deadline_ns = clock_now_ns() + LOAD_OWN_S * SECOND_NS;
    if (host_go(&host->base, err) != 0)
        return -1;
    if (host_await(&host->base, 1, deadline_ns, &said, err) != 0)
        return err_wrap(err, "while it was loaded");
    look_loaded(host);
    bind_first(host);
    return 0;
}

/* A baseline needs its libraries, where they are. */
static int load(struct cpu_host *host, const char *artifact, struct err *err)
{
    char path[WIRE_PATH_MAX];
    if (strlen(artifact) >= WIRE_PATH_MAX)
        return err_set(err, ERR_LIMIT, "the artifact's path is too long");
    strcpy(path, artifact);
    bool alone = !artifact_may_load(artifact) && alone_make(artifact, path, sizeof path);
    strcpy(host->control->artifact, path);
    host->control->alone = alone;
    int result = load_it(host, err);
    if (alone)
        alone_remove(path);
    memset(host->control->artifact, 0, sizeof host->control->artifact);
    return result;
}

/* ---- the subject ---- */

static void resume(struct subject *subject)
{
    struct cpu_host *host = (struct cpu_host *)subject;
    if (host->paused && !host->base.reaped)
        kill(-subject->pid, SIGCONT);
    host->paused = false;
}

/* Confirmed: when this returns no thread of the group runs. */
static void pause_group(struct subject *subject)
{
    struct cpu_host *host = (struct cpu_host *)subject;
    cpu_host_settle();
    if (host->paused || host->base.reaped)
        return;
    if (host->hold == NULL)
        kill(-subject->pid, SIGSTOP);
    hold_end(host->hold);
    host->hold = NULL;
    stop_group(host);
    unsigned others = others_have_run(host) ? 1 : 0, there = count_threads(subject->pid);
    saw_threads(host, there > others ? there : others);
    host->paused = true;
}

static struct remains remains(struct subject *subject)
{
    struct cpu_host *host = (struct cpu_host *)subject;
    struct left now;
    if (thread_state(subject->pid, subject->pid) == 'Z') /* its next call says so */
        return (struct remains){0};
    if (!left_look(subject->pid, &host->places, &now)) /* killed meanwhile */
        return (struct remains){0};
    const char *changed = changed_for_good(host, &now, false);
    bool more = now.threads > host->own_threads;
    return (struct remains){host->spoilt_by_load != NULL ? host->spoilt_by_load : changed,
                            now.memory_bytes, more ? now.threads - host->own_threads : 0};
}

/* ---- held ---- */

static int held_ended(struct cpu_host *host, enum hold_end how, struct err *err)
{
    uint64_t count;
    if (how == HOLD_DIED)
        return host_ended(&host->base, err);
    if (how == HOLD_DONE && read(host->base.done, &count, sizeof count) == (ssize_t)sizeof count &&
        count == 1)
        return 0;
    host_end(&host->base);
    if (how == HOLD_LATE)
        return err_set(err, ERR_TIMEOUT, "no answer in time");
    if (how == HOLD_CROWDED)
        return err_set(err, ERR_CHILD, THREADS_MESSAGE, HOLD_THREADS_MOST);
    return err_set(err, ERR_PROTOCOL, "another thread than the caller's said \"done\"");
}

/* The word is there before it is let go. */
static int call_held(struct cpu_host *host, uint64_t deadline_ns, struct err *err)
{
    if (host_go(&host->base, err) != 0)
        return -1;
    host->paused = false;
    enum hold_end how = hold_run(host->hold, deadline_ns);
    saw_threads(host, hold_threads(host->hold));
    return held_ended(host, how, err);
}

static void tell(struct cpu_host *host, const struct call *call)
{
    struct wire_call *told = &host->control->call;
    told->input_count = call->input_count;
    told->output_count = call->output_count;
    told->workspace_count = call->workspace_count;
    size_t count = (size_t)call->input_count + call->output_count + call->workspace_count;
    memcpy(told->offsets, call->offsets, count * sizeof told->offsets[0]);
    if (call->guarded)
        memcpy(told->offsets, call->alias_offsets, call->input_count * sizeof told->offsets[0]);
    memcpy(told->dims, call->dims, sizeof told->dims);
}

/* A thread that ended meanwhile is no reason to say that none can be held. */
static void begin_hold(struct cpu_host *host)
{
    host->hold = hold_begin(&host->base.subject);
    if (host->hold == NULL && errno != ESRCH && !hold_permitted())
        host->base.subject.unheld = true;
}

/* It rests before the word is given, so that its threads can be watched; or it is let go as ever.
 */
static int call_watched(struct cpu_host *host, uint64_t deadline_ns, struct err *err)
{
    struct subject *subject = &host->base.subject;
    unsigned said;
    if (!subject->watch->late)
        resume(subject);
    struct halt *halt =
        halt_begin(subject->pid, left_mapped_at(subject->pid, host->base.inputs_inode),
                   left_mapped_at(subject->pid, host->base.outputs_inode), subject->watch);
    int result = host_go(&host->base, err);
    if (result != 0)
        kill(-subject->pid, SIGKILL);
    resume(subject);
    halt_run(halt, host->base.done, host->base.pidfd, deadline_ns);
    return result == 0 ? host_await(&host->base, 1, deadline_ns, &said, err) : -1;
}

static int call_runner(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                       struct err *err)
{
    struct cpu_host *host = (struct cpu_host *)subject;
    uint64_t stale;
    unsigned said;
    if (host->base.reaped)
        return err_set(err, ERR_CHILD, "the runner has ended");
    if (host->hold != NULL || subject->hold_ns != 0 || subject->watch != NULL)
        pause_group(subject);
    if (subject->hold_ns != 0)
        begin_hold(host);
    if (read(host->base.done, &stale, sizeof stale) > 0) {
        host_end(&host->base);
        return err_set(err, ERR_PROTOCOL, "the kernel said \"done\" before it was called");
    }
    if (subject->threads > HOLD_THREADS_MOST) {
        host_end(&host->base);
        return err_set(err, ERR_CHILD, THREADS_MESSAGE, HOLD_THREADS_MOST);
    }
    if (thread_state(subject->pid, subject->pid) == 'Z') { /* another would answer, never held */
        if (host_wait_warm(&host->base, err) != 0) /* or all of them have ended, for a reason */
            return -1;
        host_end(&host->base);
        return err_set(err, ERR_CHILD, "the thread that is called has ended");
    }
    tell(host, call);
    uint64_t timeout_ns = call->timeout_ms * UINT64_C(1000000);
    /* So many turns of the caller's, and more as it tires: what waits longer waits for the end. */
    uint64_t held_ns = subject->hold_ns * HELD_TURNS;
    uint64_t start = clock_now_ns();
    int result = -1;
    if (host->hold != NULL)
        result = call_held(host, start + (held_ns < timeout_ns ? held_ns : timeout_ns), err);
    else if (subject->watch != NULL)
        result = call_watched(host, start + timeout_ns, err);
    else if (host_go(&host->base, err) == 0) {
        resume(subject); /* the clock runs: time to wake up is its own */
        result = host_await(&host->base, 1, start + timeout_ns, &said, err);
    }
    subject->hold_ns = 0;
    subject->watch = NULL;
    *elapsed_ns = clock_now_ns() - start;
    if (result != 0 && err->code == ERR_TIMEOUT)
        return err_set(err, ERR_TIMEOUT, "did not answer within %.3g s",
                       (double)call->timeout_ms / 1e3);
    return result;
}

static void close_subject(struct subject *subject)
{
    host_close((struct host *)subject);
}

static const struct subject_ops runner_ops = {call_runner, pause_group, resume, close_subject};

int cpu_open(const struct lane_facts *lane, const struct region *region, const char *artifact,
             const char *const *env, struct subject **subject, struct err *err)
{
    struct cpu_host *host = NULL;
    /* A spare that died meanwhile is ours to replace; what happens with the artifact in it is not.
     */
    for (int tries = 0; host == NULL && tries < 2; tries++) {
        if (cpu_host_take(lane, region, env, &host, err) != 0)
            return -1;
        if (load(host, artifact, err) == 0)
            break;
        host_close(&host->base);
        host = NULL;
        if (err->code != ERR_ENVIRONMENT)
            break;
    }
    if (host == NULL)
        return -1;
    *subject = &host->base.subject;
    (*subject)->ops = &runner_ops;
    (*subject)->name = "runner";
    (*subject)->guards = true;
    (*subject)->remains = remains;
    (*subject)->holds = true;
    (*subject)->unwatched = !halt_watches();
    (*subject)->wakes_itself = true;
    return 0;
}
