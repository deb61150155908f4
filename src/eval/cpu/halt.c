#include "eval/cpu/halt.h"

#include "base/clock.h"
#include "base/mem.h"
#include "eval/cpu/hold.h"
#include "eval/cpu/private.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

enum {
    LOOK_NS = 50000,
    ASLEEP_NS = 2000000,   /* of a caller that waits: a short sleep is no wait */
    PATIENCE_NS = 1000000, /* CPU time of one that waits in a loop, and twice the usual call's */
    WALL_TIMES = 8,        /* of that, by the clock: on a busy machine it may not run */
    STATUS = 6,            /* debug registers: which was hit, and which are on */
    CONTROL = 7
};

enum state { RUNS, STOPPED, GONE };

struct thread {
    int id;
    enum state state;
    bool watched;
    int signal; /* to be delivered when it goes on */
};

struct halt {
    int pid;
    uint64_t outputs;
    const struct watch *watch;
    unsigned hits;
    bool stopping, died;
    size_t count;
    struct thread threads[HOLD_THREADS_MOST + 1]; /* [0]: the caller's */
};

/* ---- what a thread may not write unseen ---- */

#if defined(__x86_64__)
static bool poke(const struct thread *thread, size_t number, uint64_t value)
{
    size_t at = offsetof(struct user, u_debugreg) + number * sizeof(uint64_t);
    return ptrace(PTRACE_POKEUSER, thread->id, (void *)at, (void *)(uintptr_t)value) == 0;
}

/* Of each: bit 2i, and from bit 16 + 4i on what is looked for (a write: 1) and its bytes. */
static void watch(const struct halt *halt, struct thread *thread)
{
    static const uint64_t lengths[9] = {[1] = 0, [2] = 1, [4] = 3, [8] = 2};
    uint64_t control = 0;
    for (size_t i = 0; i < halt->watch->count; i++) {
        const struct watched *item = &halt->watch->items[i];
        if (poke(thread, i, halt->outputs + item->offset))
            control |= UINT64_C(1) << 2 * i | (1 | lengths[item->bytes] << 2) << (16 + 4 * i);
    }
    thread->watched = poke(thread, CONTROL, control);
}

static void unwatch(const struct thread *thread)
{
    (void)poke(thread, CONTROL, 0); /* a thread that nobody traces would die of it */
}

/* How many it has written now; each counts once for a thread. */
static unsigned hits(const struct thread *thread)
{
    const size_t at = offsetof(struct user, u_debugreg);
    long status =
        ptrace(PTRACE_PEEKUSER, thread->id, (void *)(at + STATUS * sizeof(uint64_t)), NULL);
    long control =
        ptrace(PTRACE_PEEKUSER, thread->id, (void *)(at + CONTROL * sizeof(uint64_t)), NULL);
    unsigned found = 0;
    for (unsigned i = 0; i < WATCH_MOST; i++)
        if ((status >> i & 1) != 0 && (control >> 2 * i & 1) != 0) {
            control &= ~(1L << 2 * i);
            found++;
        }
    (void)poke(thread, CONTROL, (uint64_t)control);
    (void)poke(thread, STATUS, 0);
    return found;
}
#else
static void watch(const struct halt *halt, struct thread *thread)
{
    (void)halt;
    thread->watched = true;
}

static void unwatch(const struct thread *thread)
{
    (void)thread;
}

static unsigned hits(const struct thread *thread)
{
    (void)thread;
    return 0;
}
#endif

/* ---- the threads ---- */

static struct thread *add(struct halt *halt, int id)
{
    for (size_t i = 0; i < halt->count; i++)
        if (halt->threads[i].id == id && halt->threads[i].state != GONE)
            return &halt->threads[i];
    for (size_t i = 1; i < halt->count; i++)
        if (halt->threads[i].state == GONE) {
            halt->threads[i] = (struct thread){.id = id};
            return &halt->threads[i];
        }
    if (halt->count > HOLD_THREADS_MOST)
        return NULL;
    halt->threads[halt->count] = (struct thread){.id = id};
    return &halt->threads[halt->count++];
}

static void go_on(struct thread *thread)
{
    (void)ptrace(PTRACE_CONT, thread->id, NULL, (void *)(intptr_t)thread->signal);
    thread->signal = 0;
    thread->state = RUNS;
}

static void made_one(struct halt *halt, const struct thread *thread, int status)
{
    unsigned long made = 0;
    if (status >> 16 == PTRACE_EVENT_CLONE &&
        ptrace(PTRACE_GETEVENTMSG, thread->id, NULL, &made) == 0 && made > 0)
        (void)add(halt, (int)made);
}

/* The end of all is left to who reaps it. */
static void await_stop(struct halt *halt, struct thread *thread)
{
    siginfo_t info = {0};
    int status;
    thread->state = GONE;
    while (waitid(P_PID, (id_t)thread->id, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL) != 0)
        if (errno != EINTR)
            return;
    bool stopped = info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED;
    if (stopped || thread->id != halt->pid)
        (void)waitpid(thread->id, &status, __WALL);
    if (!stopped)
        return;
    if (WIFSTOPPED(status) && status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
        thread->signal = WSTOPSIG(status);
    made_one(halt, thread, status);
    thread->state = STOPPED;
}

/* The caller last: where all of them have died, its end is told after the others'. */
static void stop(struct halt *halt, size_t first)
{
    for (size_t i = first; i < halt->count; i++)
        if (halt->threads[i].state == RUNS)
            (void)ptrace(PTRACE_INTERRUPT, halt->threads[i].id, NULL, NULL);
    for (size_t i = halt->count; i-- > first;)
        if (halt->threads[i].state == RUNS)
            await_stop(halt, &halt->threads[i]);
}

static bool any_runs(const struct halt *halt)
{
    for (size_t i = 0; i < halt->count; i++)
        if (halt->threads[i].state == RUNS)
            return true;
    return false;
}

/* Its write was told as it was stopped: left there, the signal would end the process. */
static void drop_trap(struct halt *halt, struct thread *thread)
{
    const struct __ptrace_peeksiginfo_args all = {.off = 0, .flags = 0, .nr = 8};
    siginfo_t pending[8];
    long count = ptrace(PTRACE_PEEKSIGINFO, thread->id, (void *)(uintptr_t)&all, pending);
    for (long i = 0; i < count; i++)
        if (pending[i].si_signo == SIGTRAP && pending[i].si_code == TRAP_HWBKPT) {
            go_on(thread); /* it runs nothing: the signal comes first */
            await_stop(halt, thread);
            return;
        }
}

/* With SIGSTOP none of them runs again: it is sent when all have stopped, since one that runs would
 * take it and be stopped by its tracer in place of the group. */
static void let_go(struct halt *halt, bool to_stop)
{
    while (any_runs(halt))
        stop(halt, 0); /* one that was stopped may have made another */
    for (size_t i = 1; i < halt->count; i++)
        if (halt->threads[i].state == STOPPED)
            drop_trap(halt, &halt->threads[i]);
    if (to_stop)
        kill(-halt->pid, SIGSTOP);
    for (size_t i = halt->count; i-- > 0;) {
        struct thread *thread = &halt->threads[i];
        if (thread->state != STOPPED)
            continue;
        unwatch(thread);
        if (ptrace(PTRACE_DETACH, thread->id, NULL, (void *)(intptr_t)thread->signal) != 0)
            await_stop(halt, thread); /* killed */
    }
}

/* ---- what happens to them ---- */

static void stops(struct halt *halt, struct thread *thread, int status)
{
    bool trapped = status >> 16 == 0 && WSTOPSIG(status) == SIGTRAP;
    made_one(halt, thread, status);
    unsigned found = trapped && thread != halt->threads ? hits(thread) : 0;
    halt->hits += found;
    if (status >> 16 == 0 && found == 0)
        thread->signal = WSTOPSIG(status);
    thread->state = STOPPED;
    if (thread == halt->threads || (!halt->stopping && halt->hits < halt->watch->after))
        go_on(thread);
}

/* A new one's first stop may come before its maker's. Those that end are reaped. */
static void take_all(struct halt *halt)
{
    siginfo_t info = {0};
    int status;
    while (waitid(P_PGID, (id_t)halt->pid, &info,
                  WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
           info.si_pid != 0) {
        bool ended = info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED;
        halt->died = ended && info.si_pid == halt->pid;
        if (halt->died)
            return;
        struct thread *thread = add(halt, info.si_pid);
        if (waitpid(info.si_pid, &status, __WALL | WNOHANG) != info.si_pid)
            continue;
        if (thread == NULL) { /* too many: those run on, and who made them is told so elsewhere */
            (void)ptrace(PTRACE_DETACH, info.si_pid, NULL, NULL);
        } else if (!WIFSTOPPED(status)) {
            thread->state = GONE;
        } else {
            if (thread != halt->threads && !thread->watched)
                watch(halt, thread);
            stops(halt, thread, status);
        }
        info.si_pid = 0;
    }
}

struct halt *halt_begin(int pid, uint64_t outputs, const struct watch *watched)
{
    const unsigned long options = PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    struct halt *halt = MEM_NEW(struct halt);
    char path[64];
    halt->pid = pid;
    halt->outputs = outputs;
    halt->watch = watched;
    (void)add(halt, pid);
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        if (strtol(entry->d_name, NULL, 10) > 0)
            (void)add(halt, (int)strtol(entry->d_name, NULL, 10));
    if (tasks != NULL)
        closedir(tasks);
    for (size_t i = 0; i < halt->count; i++)
        if (ptrace(PTRACE_SEIZE, halt->threads[i].id, NULL, (void *)options) != 0)
            halt->threads[i].state = GONE;
    stop(halt, 0);
    for (size_t i = 0; i < halt->count; i++) {
        if (halt->threads[i].state != STOPPED)
            continue;
        if (i > 0)
            watch(halt, &halt->threads[i]);
        go_on(&halt->threads[i]);
    }
    return halt;
}

/* ---- the call ---- */

/* True: the word is there, or the process has ended. */
static bool is_over(struct halt *halt, int done, int pidfd)
{
    struct pollfd fds[2] = {{.fd = done, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    const struct timespec wait = {.tv_nsec = LOOK_NS};
    if (ppoll(fds, 2, &wait, NULL) > 0)
        return true;
    take_all(halt);
    return halt->died;
}

/* False: the caller waits for those that are stopped. */
static bool says_done(struct halt *halt, int done, int pidfd, uint64_t deadline_ns)
{
    const uint64_t patience_ns = PATIENCE_NS + 2 * halt->watch->usual_ns;
    const uint64_t began_ns = clock_now_ns();
    const uint64_t used_ns = thread_times(halt->pid, halt->pid).cpu_ns;
    uint64_t awake_ns = began_ns, seen_ns = used_ns;
    while (!is_over(halt, done, pidfd)) {
        uint64_t now_ns = clock_now_ns(), cpu_ns = thread_times(halt->pid, halt->pid).cpu_ns;
        if (!caller_sleeps(halt->pid) || cpu_ns != seen_ns)
            awake_ns = now_ns;
        seen_ns = cpu_ns;
        if (now_ns - awake_ns > ASLEEP_NS || cpu_ns - used_ns > patience_ns ||
            now_ns - began_ns > WALL_TIMES * patience_ns || now_ns > deadline_ns)
            return false;
    }
    return true;
}

void halt_run(struct halt *halt, int done, int pidfd, uint64_t deadline_ns)
{
    bool over = false;
    while (!over && halt->hits < halt->watch->after && clock_now_ns() < deadline_ns)
        over = is_over(halt, done, pidfd);
    if (!over && halt->hits >= halt->watch->after) {
        halt->stopping = true;
        stop(halt, 1);
        over = says_done(halt, done, pidfd, deadline_ns);
    }
    let_go(halt, over);
    mem_free(halt);
}
