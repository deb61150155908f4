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
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

enum {
    LOOK_NS = 20000,
    ASLEEP_NS = 2000000,   /* of those that wait: a short sleep is no wait */
    ASLEEP_LOOKS = 32,     /* and as often: whoever looks may be late, and miss what they did */
    PATIENCE_NS = 1000000, /* CPU time of each that waits in a loop, and twice the usual call's */
    WALL_PART = 4,         /* of the time that is left, by the clock: they may wait for a core */
    STATUS = 6,            /* debug registers: which was hit, and which are on */
    CONTROL = 7
};

enum state { RUNS, STOPPED, FREE, GONE }; /* FREE: it runs, and nobody traces it */

struct thread {
    int id;
    enum state state;
    bool watched;
    bool before; /* stopped until the target is written */
    int signal;  /* to be delivered when it goes on */
};

struct halt {
    int pid;
    uint64_t inputs, outputs;
    const struct watch *watch;
    uint64_t early[WATCH_MOST]; /* what late targets hold before the call */
    bool hit, died;
    bool waited; /* nobody is stopped before the target any more */
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

/* Of each: bit 2i, and from bit 16 + 4i on what is looked for (a write: 1, a read as well: 3) and
 * its bytes. The caller may do with a target what it likes. */
static void watch(const struct halt *halt, struct thread *thread)
{
    static const uint64_t lengths[9] = {[1] = 0, [2] = 1, [4] = 3, [8] = 2};
    uint64_t control = 0;
    for (size_t i = thread == halt->threads ? halt->watch->targets : 0; i < halt->watch->count;
         i++) {
        const struct watched *item = &halt->watch->items[i];
        uint64_t kind = (item->input ? 3 : 1) | lengths[item->bytes] << 2;
        if (poke(thread, i, (item->input ? halt->inputs : halt->outputs) + item->offset))
            control |= UINT64_C(1) << 2 * i | kind << (16 + 4 * i);
    }
    thread->watched = poke(thread, CONTROL, control);
}

bool halt_watches(void)
{
    return true;
}

static void unwatch(const struct thread *thread)
{
    (void)poke(thread, CONTROL, 0); /* a thread that nobody traces would die of it */
}

/* Which it has written now, a bit each; each counts once for a thread. */
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
            found |= 1U << i;
        }
    (void)poke(thread, CONTROL, (uint64_t)control);
    (void)poke(thread, STATUS, 0);
    return found;
}
#else
bool halt_watches(void)
{
    return false;
}

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
    int status = 0;
    thread->state = GONE;
    if (!thread_await_stop(halt->pid, thread->id, &status))
        return;
    if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
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
    for (size_t i = 0; i < halt->count; i++)
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
    unsigned found = trapped ? hits(thread) : 0;
    if (status >> 16 == 0 && found == 0)
        thread->signal = WSTOPSIG(status);
    thread->state = STOPPED;
    bool target = (found & ((1U << halt->watch->targets) - 1)) != 0 && !halt->hit;
    halt->hit |= target;
    thread->before = found != 0 && !target && !halt->hit && !halt->waited;
    if (!target && !thread->before)
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
        if (!thread_take(halt->pid, info.si_pid, &status))
            continue;
        if (thread == NULL) { /* too many: those run on, and who made them is told so elsewhere */
            (void)ptrace(PTRACE_DETACH, info.si_pid, NULL, NULL);
        } else if (!WIFSTOPPED(status)) {
            thread->state = GONE;
        } else {
            if (!thread->watched && !halt->watch->late)
                watch(halt, thread);
            stops(halt, thread, status);
        }
        info.si_pid = 0;
    }
}

/* As they are now: those that the table does not have yet. */
static void list(struct halt *halt)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", halt->pid);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        if (strtol(entry->d_name, NULL, 10) > 0)
            (void)add(halt, (int)strtol(entry->d_name, NULL, 10));
    if (tasks != NULL)
        closedir(tasks);
}

static void seize(struct thread *thread)
{
    const unsigned long options = PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    bool seized = ptrace(PTRACE_SEIZE, thread->id, NULL, (void *)options) == 0;
    thread->state = seized ? RUNS : GONE;
}

static uint64_t in_region(const struct watch *watch, size_t item)
{
    uint64_t bits = 0;
    memcpy(&bits, watch->outputs + watch->items[item].offset, watch->items[item].bytes);
    return bits;
}

struct halt *halt_begin(int pid, uint64_t inputs, uint64_t outputs, const struct watch *watched)
{
    struct halt *halt = MEM_NEW(struct halt);
    halt->pid = pid;
    halt->inputs = inputs;
    halt->outputs = outputs;
    halt->watch = watched;
    (void)add(halt, pid);
    list(halt);
    for (size_t i = 0; i < halt->count && watched->late; i++)
        halt->threads[i].state = FREE;
    for (size_t i = 0; i < watched->count && watched->late; i++)
        halt->early[i] = in_region(watched, i);
    if (watched->late)
        return halt;
    for (size_t i = 0; i < halt->count; i++)
        seize(&halt->threads[i]);
    stop(halt, 0);
    for (size_t i = 0; i < halt->count; i++) {
        if (halt->threads[i].state != STOPPED)
            continue;
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

/* Since some were stopped: what the others do. */
struct wait {
    uint64_t ends_ns, awake_ns;
    int64_t before_ns, seen_ns; /* CPU time of all */
    unsigned asleep;            /* looks in a row */
};

static struct wait wait_begin(const struct halt *halt, uint64_t deadline_ns)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    int64_t cpu_ns = clock_cpu_ns(halt->pid);
    return (struct wait){now_ns + left_ns / WALL_PART, now_ns, cpu_ns, cpu_ns, 0};
}

static bool any_is_ready(const struct halt *halt, int64_t *running)
{
    bool ready = false;
    *running = 0;
    for (size_t i = 0; i < halt->count; i++) {
        const struct thread *thread = &halt->threads[i];
        if (thread->state != RUNS && thread->state != FREE)
            continue;
        ++*running;
        char state = ready ? 'R' : thread_state(halt->pid, thread->id);
        ready = state == 'R' || state == 'D'; /* D: for a page, as on a busy machine */
    }
    return ready;
}

/* They all wait for those that are stopped: asleep, or in loops. */
static bool all_wait(const struct halt *halt, struct wait *wait)
{
    const uint64_t patience_ns = PATIENCE_NS + 2 * halt->watch->usual_ns;
    const uint64_t now_ns = clock_now_ns();
    const int64_t cpu_ns = clock_cpu_ns(halt->pid);
    int64_t running;
    bool awake = any_is_ready(halt, &running) || cpu_ns != wait->seen_ns;
    wait->seen_ns = cpu_ns;
    wait->asleep = awake ? 0 : wait->asleep + 1;
    if (awake)
        wait->awake_ns = now_ns;
    return (wait->asleep > ASLEEP_LOOKS && now_ns - wait->awake_ns > ASLEEP_NS) ||
           cpu_ns - wait->before_ns > running * (int64_t)patience_ns || now_ns > wait->ends_ns;
}

/* False: the caller waits for those that are stopped. */
static bool says_done(struct halt *halt, int done, int pidfd, uint64_t deadline_ns)
{
    struct wait wait = wait_begin(halt, deadline_ns);
    while (!is_over(halt, done, pidfd))
        if (all_wait(halt, &wait))
            return false;
    return true;
}

static void end_before(struct halt *halt)
{
    for (size_t i = 0; i < halt->count; i++)
        if (halt->threads[i].before) {
            halt->threads[i].before = false;
            go_on(&halt->threads[i]);
        }
    halt->waited = true;
}

/* Until one has written a target. True: the call is over. Those that have written something else
 * wait for it, as long as anybody computes. */
static bool await_hit(struct halt *halt, int done, int pidfd, uint64_t deadline_ns)
{
    struct wait wait = wait_begin(halt, deadline_ns);
    bool waits = false, over = false;
    while (!over && !halt->hit && clock_now_ns() < deadline_ns) {
        over = is_over(halt, done, pidfd);
        bool any = false;
        for (size_t i = 0; i < halt->count; i++)
            any = any || halt->threads[i].before;
        if (any && !waits)
            wait = wait_begin(halt, deadline_ns);
        waits = any;
        if (waits && all_wait(halt, &wait))
            end_before(halt);
    }
    end_before(halt);
    return over;
}

/* Nothing of a tracer's is there to be felt until then. */
static bool await_moment(struct halt *halt, int done, int pidfd, uint64_t deadline_ns)
{
    const struct watch *watch = halt->watch;
    const int64_t before_ns = clock_cpu_ns(halt->pid);
    bool over = false;
    while (!over && !halt->hit && clock_now_ns() < deadline_ns) {
        over = is_over(halt, done, pidfd);
        uint64_t used_ns = (uint64_t)(clock_cpu_ns(halt->pid) - before_ns);
        halt->hit = watch->at_ns > 0 && used_ns >= watch->at_ns;
        for (size_t i = 0; i < watch->count; i++)
            halt->hit |= in_region(watch, i) != halt->early[i];
    }
    if (over || !halt->hit)
        return over;
    list(halt);
    size_t others = halt->count - 1;
    for (size_t i = 1; i <= others; i++)
        if (watch->one == 0 || i == 1 + watch->one % others)
            seize(&halt->threads[i]);
        else
            halt->threads[i].state = FREE;
    stop(halt, 1);
    return false;
}

void halt_run(struct halt *halt, int done, int pidfd, uint64_t deadline_ns)
{
    (void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    bool over = halt->watch->late ? await_moment(halt, done, pidfd, deadline_ns)
                                  : await_hit(halt, done, pidfd, deadline_ns);
    if (!over && halt->hit)
        over = says_done(halt, done, pidfd, deadline_ns);
    let_go(halt, over);
    (void)prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0);
    mem_free(halt);
}
