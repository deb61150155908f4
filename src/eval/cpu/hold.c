#include "eval/cpu/hold.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "eval/cpu/private.h"
#include "eval/cpu/wire.h"

#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SLICE_NS = 62500,  /* the shortest of a thread that others wait for in a loop */
    SLICES = 6,        /* each twice the one before; which one is up to chance */
    YIELD_NS = 100000, /* what a sched_yield() counts: on a busy machine one takes far longer */
    LOOKS = 64,        /* for a stop, before this thread sleeps */
    NAP_NS = 50000,
    GRACE_NS = 20000000, /* a short sleep may end late */
    OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL
};

enum state { NEW, HELD, RUNS, WAITS, GONE };

struct thread {
    int id;
    enum state state;
    int signal;        /* to be delivered when it goes on */
    bool had_turn;     /* since all of them had one */
    bool saying;       /* in the system call that says "done" */
    bool futex;        /* in one that may wake another */
    uint64_t begun_ns; /* CPU time at the beginning of its turn */
    uint64_t extra_ns; /* what counts as CPU time in this turn */
    uint64_t waits_ns; /* when a wait with an end of its own began, in free_ns(); 0: it is none */
};

struct hold {
    int pid;
    size_t count, most;
    struct thread *current; /* the one that runs, or NULL */
    const struct subject *subject;
    const struct thread *ran; /* whose turn has ended, or will; NULL: that was told */
    bool lent;                /* the turn is a tired caller's */
    unsigned tired;           /* how often it was */
    uint64_t slice_ns;
    bool done, forged, crowded;
    struct random random;
    struct thread threads[HOLD_THREADS_MOST + 1]; /* [0]: the caller */
};

static uint64_t cpu_ns(const struct hold *hold, const struct thread *thread)
{
    return thread_times(hold->pid, thread->id).cpu_ns;
}

/* The clock, less what the tracer and the thread spent in the queue for a core. */
static uint64_t free_ns(const struct hold *hold, const struct thread *thread)
{
    uint64_t own_ns = thread_times(getpid(), gettid()).queued_ns;
    return clock_now_ns() - own_ns - thread_times(hold->pid, thread->id).queued_ns;
}

static void go_on(struct thread *thread, enum state state)
{
    thread->state = state;
    if (ptrace(PTRACE_SYSCALL, thread->id, NULL, (void *)(intptr_t)thread->signal) != 0)
        thread->state = HELD; /* killed: its end is on the way */
    thread->signal = 0;
}

static struct thread *find(struct hold *hold, int id)
{
    for (size_t i = 0; i < hold->count; i++)
        if (hold->threads[i].id == id && hold->threads[i].state != GONE)
            return &hold->threads[i];
    return NULL;
}

/* NULL: there are too many. */
static struct thread *add(struct hold *hold, int id)
{
    struct thread *known = find(hold, id);
    if (known != NULL)
        return known;
    for (size_t i = 1; i < hold->count && known == NULL; i++)
        if (hold->threads[i].state == GONE)
            known = &hold->threads[i];
    if (known == NULL && hold->count <= HOLD_THREADS_MOST)
        known = &hold->threads[hold->count++];
    if (known == NULL)
        return NULL;
    *known = (struct thread){.id = id, .state = NEW};
    size_t alive = 0;
    for (size_t i = 1; i < hold->count; i++)
        alive += hold->threads[i].state != GONE;
    hold->most = alive > hold->most ? alive : hold->most;
    return known;
}

/* ---- what a thread asks of the kernel ---- */

static bool is_wait(const struct __ptrace_syscall_info *info, bool *ends_itself)
{
    const unsigned long long *arguments = (const unsigned long long *)info->entry.args;
    *ends_itself = true;
    switch ((long)info->entry.nr) {
    case SYS_futex: {
        int command = (int)arguments[1] & FUTEX_CMD_MASK;
        *ends_itself = arguments[3] != 0;
        return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI;
    }
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_restart_syscall:
        return true;
    default:
        return false;
    }
}

static void enters(struct hold *hold, struct thread *thread,
                   const struct __ptrace_syscall_info *info)
{
    bool ends_itself;
    if (info->entry.nr == SYS_write && (int)info->entry.args[0] == WIRE_DONE) {
        thread->saying = true;
        hold->forged |= thread != hold->threads;
    }
    thread->futex = info->entry.nr == SYS_futex;
    if (info->entry.nr == SYS_sched_yield)
        thread->extra_ns += YIELD_NS;
    if (!is_wait(info, &ends_itself)) {
        go_on(thread, RUNS);
        return;
    }
    thread->waits_ns = ends_itself ? free_ns(hold, thread) : 0;
    go_on(thread, WAITS);
    if (hold->current == thread)
        hold->current = NULL;
}

/* Who sleeps for a moment waits for nobody: that is time in which it might have computed. */
static uint64_t used_waiting(const struct hold *hold, const struct thread *thread)
{
    int64_t waited_ns = 0; /* below 0: both were in the queue at once */
    if (thread->waits_ns != 0)
        waited_ns = (int64_t)(free_ns(hold, thread) - thread->waits_ns);
    return thread->extra_ns + (waited_ns > GRACE_NS ? (uint64_t)waited_ns - GRACE_NS : 0);
}

static void leaves(struct hold *hold, struct thread *thread)
{
    if (thread->saying && thread == hold->threads)
        hold->done = true;
    thread->saying = false;
    bool woke = thread != hold->threads && thread->futex; /* perhaps the caller: choose anew */
    thread->futex = false;
    if (thread->state == RUNS && hold->current == thread && !hold->done && !woke) {
        go_on(thread, RUNS);
        return;
    }
    thread->extra_ns = thread->waits_ns != 0 ? used_waiting(hold, thread) + NAP_NS : 0;
    thread->waits_ns = 0;
    thread->state = HELD;
    if (hold->current == thread)
        hold->current = NULL;
}

static void stops(struct hold *hold, struct thread *thread, int status)
{
    struct __ptrace_syscall_info info = {0};
    int signal_number = WSTOPSIG(status), event = status >> 16;
    bool ran = hold->current == thread;
    if (event == PTRACE_EVENT_CLONE) {
        unsigned long made = 0;
        if (ptrace(PTRACE_GETEVENTMSG, thread->id, NULL, &made) == 0)
            hold->crowded |= add(hold, (int)made) == NULL;
        go_on(thread, RUNS);
        return;
    }
    if (event == 0 && signal_number == (SIGTRAP | 0x80)) {
        ptrace(PTRACE_GET_SYSCALL_INFO, thread->id, (void *)sizeof info, &info);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
            enters(hold, thread, &info);
        else
            leaves(hold, thread);
        return;
    }
    if (event == 0 && signal_number != SIGCONT && signal_number != SIGSTOP)
        thread->signal = signal_number;
    thread->state = HELD;
    if (ran)
        hold->current = NULL;
}

/* ---- what has happened ---- */

/* One stop or end, if there is one. False: there is none, or it is the end of all. */
static bool take(struct hold *hold, bool *died)
{
    siginfo_t info = {0};
    int status;
    if (waitid(P_PGID, (id_t)hold->pid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) !=
            0 ||
        info.si_pid == 0)
        return false;
    bool ended = info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED;
    if (ended && info.si_pid == hold->pid) {
        *died = true;
        return false;
    }
    struct thread *thread = add(hold, info.si_pid);
    if (!thread_take(hold->pid, info.si_pid, &status))
        return true;
    if (thread == NULL) {
        hold->crowded = true;
        return true;
    }
    if (WIFSTOPPED(status)) {
        stops(hold, thread, status);
        return true;
    }
    thread->state = GONE;
    if (hold->current == thread)
        hold->current = NULL;
    return true;
}

/* ---- whose turn it is ---- */

static void begin_turn(struct hold *hold, struct thread *thread)
{
    if (thread != hold->threads || thread->extra_ns == 0) {
        thread->begun_ns = cpu_ns(hold, thread);
        thread->extra_ns = 0;
    }
    hold->current = thread;
    hold->ran = thread;
    go_on(thread, RUNS);
}

/* Each has one turn before anybody has the next; which of them is up to chance, each time: two that
 * were made in an order, among many that do nothing, begin as often in the other one. */
static struct thread *next_other(struct hold *hold)
{
    struct thread *next = NULL;
    for (int round = 0; round < 2 && next == NULL; round++) {
        size_t seen = 0;
        for (size_t i = 1; i < hold->count; i++) {
            struct thread *thread = &hold->threads[i];
            if (round > 0)
                thread->had_turn = false;
            if (thread->state == HELD && !thread->had_turn &&
                random_below(&hold->random, ++seen) == 0)
                next = thread;
        }
    }
    if (next != NULL)
        next->had_turn = true;
    return next;
}

/* Who was tired often waits in loops again and again: then turns follow each other faster. */
static uint64_t patience_ns(const struct hold *hold)
{
    enum { OFTEN = 16, HALVES = 5 };
    unsigned halves = hold->tired / OFTEN;
    return hold->subject->hold_ns >> (halves < HALVES ? halves : HALVES);
}

static bool is_tired(const struct hold *hold, const struct thread *thread)
{
    uint64_t used = used_waiting(hold, thread);
    if (thread->state != WAITS)
        used += cpu_ns(hold, thread) - thread->begun_ns;
    return used > (thread == hold->threads ? patience_ns(hold) : hold->slice_ns);
}

/* One that was just made has yet to stop: it, too, may be the one that begins. */
static bool all_have_stopped(const struct hold *hold)
{
    for (size_t i = 1; i < hold->count; i++)
        if (hold->threads[i].state == NEW)
            return false;
    return true;
}

static void choose_next(struct hold *hold)
{
    struct thread *caller = hold->threads, *other = NULL;
    bool tired = is_tired(hold, caller);
    bool waits = caller->state == WAITS && caller->waits_ns == 0;
    /* A caller that was woken goes first: it is runnable before the stop of who woke it is told. */
    if ((waits && thread_state(hold->pid, hold->pid) != 'S') ||
        ((waits || tired) && !all_have_stopped(hold)))
        return;
    if (hold->ran != NULL && hold->subject->ran != NULL)
        hold->subject->ran(hold->subject->ran_context, (unsigned)(hold->ran - caller));
    hold->ran = NULL;
    if (waits || tired)
        other = next_other(hold);
    if (other != NULL) {
        hold->lent = !waits;
        hold->slice_ns = (uint64_t)SLICE_NS << random_below(&hold->random, SLICES);
        begin_turn(hold, other);
    } else if (caller->state == HELD) {
        hold->lent = false;
        begin_turn(hold, caller);
    }
    hold->tired += tired;
    if (tired && hold->current != NULL) { /* after this turn it has all of its patience again */
        caller->begun_ns = cpu_ns(hold, caller);
        caller->extra_ns = 0;
        caller->waits_ns = caller->waits_ns != 0 ? free_ns(hold, caller) : 0;
    }
}

static void choose(struct hold *hold)
{
    const struct thread *caller = hold->threads;
    if (hold->current == NULL)
        choose_next(hold);
    else if (is_tired(hold, hold->current) ||
             (hold->current != caller && caller->state == HELD && !hold->lent))
        ptrace(PTRACE_INTERRUPT, hold->current->id, NULL, NULL);
}

/* Of all threads and of the tracer, since they began. */
static int64_t all_queued_ns(const struct hold *hold)
{
    uint64_t queued_ns = thread_times(getpid(), gettid()).queued_ns;
    for (size_t i = 0; i < hold->count; i++)
        if (hold->threads[i].state != GONE)
            queued_ns += thread_times(hold->pid, hold->threads[i].id).queued_ns;
    return (int64_t)queued_ns;
}

/* A caller that waits in a loop goes through the queue for a core at each look: on a busy machine
 * that is no time of its own, and counts up to nine times the limit. */
static bool is_late(const struct hold *hold, uint64_t deadline_ns, uint64_t limit_ns,
                    int64_t queued_before_ns)
{
    int64_t over_ns = (int64_t)(clock_now_ns() - deadline_ns);
    return over_ns > 9 * (int64_t)limit_ns ||
           (over_ns > 0 && over_ns > all_queued_ns(hold) - queued_before_ns);
}

enum hold_end hold_run(struct hold *hold, uint64_t deadline_ns)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    const uint64_t limit_ns = deadline_ns - clock_now_ns();
    const int64_t queued_ns = all_queued_ns(hold);
    bool died = false;
    unsigned looks = 0;
    kill(-hold->pid, SIGCONT);
    for (;;) {
        if (take(hold, &died)) {
            looks = 0;
        } else if (looks++ > LOOKS) {
            nanosleep(&nap, NULL);
        }
        if (died)
            return HOLD_DIED;
        if (hold->forged)
            return HOLD_FORGED;
        if (hold->crowded)
            return HOLD_CROWDED;
        if (hold->done)
            return HOLD_DONE;
        if (looks == 0 || looks > LOOKS)
            choose(hold);
        if (looks > LOOKS && is_late(hold, deadline_ns, limit_ns, queued_ns))
            return HOLD_LATE;
    }
}

/* ---- its beginning and its end ---- */

/* Until it has stopped. The end of all is left to who reaps it. */
static void await_stop(const struct hold *hold, struct thread *thread)
{
    int status = 0;
    thread->state = GONE;
    if (!thread_await_stop(hold->pid, thread->id, &status))
        return;
    if (status >> 16 == 0 && WSTOPSIG(status) != SIGCONT && WSTOPSIG(status) != (SIGTRAP | 0x80))
        thread->signal = WSTOPSIG(status);
    thread->state = HELD;
}

/* Every thread that there is, the caller's first. */
static bool seize(struct hold *hold)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", hold->pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL || add(hold, hold->pid) == NULL)
        return false;
    bool all = true;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks))
        if (strtol(entry->d_name, NULL, 10) > 0)
            all = add(hold, (int)strtol(entry->d_name, NULL, 10)) != NULL && all;
    closedir(tasks);
    for (size_t i = 0; i < hold->count && all; i++) {
        struct thread *thread = &hold->threads[i];
        thread->state = GONE;
        if (ptrace(PTRACE_SEIZE, thread->id, NULL, (void *)(intptr_t)OPTIONS) == 0)
            await_stop(hold, thread);
        all = thread->state == HELD;
    }
    for (size_t i = 0; i < hold->count; i++)
        if (hold->threads[i].state == NEW)
            hold->threads[i].state = GONE;
    return all;
}

struct hold *hold_begin(const struct subject *subject)
{
    struct hold *hold = MEM_NEW(struct hold);
    hold->pid = subject->pid;
    hold->subject = subject;
    random_init(&hold->random, random_seed());
    if (seize(hold)) {
        hold->threads[0].begun_ns = cpu_ns(hold, hold->threads); /* it has all of its patience */
        return hold;
    }
    int failed = errno;
    hold_end(hold);
    errno = failed;
    return NULL;
}

/* Nobody has this number; Yama's level 2 leaves it to those who may trace anybody, 3 to nobody. */
bool hold_permitted(void)
{
    enum { NOBODY = 0x3fffffff };
    int scope = '0';
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file != NULL) {
        scope = fgetc(file);
        fclose(file);
    }
    if (scope == '3' || (scope == '2' && geteuid() != 0))
        return false;
    return ptrace(PTRACE_SEIZE, NOBODY, NULL, NULL) == 0 || errno == ESRCH;
}

unsigned hold_threads(const struct hold *hold)
{
    return (unsigned)hold->most;
}

/* Who runs or waits is stopped first: in a wait nobody can be let go of. */
void hold_end(struct hold *hold)
{
    if (hold == NULL)
        return;
    for (size_t i = 0; i < hold->count; i++) {
        struct thread *thread = &hold->threads[i];
        if (thread->state == RUNS || thread->state == WAITS)
            (void)ptrace(PTRACE_INTERRUPT, thread->id, NULL, NULL);
        if (thread->state != HELD && thread->state != GONE)
            await_stop(hold, thread);
    }
    kill(-hold->pid, SIGSTOP);
    for (size_t i = 0; i < hold->count; i++)
        if (hold->threads[i].state == HELD)
            ptrace(PTRACE_DETACH, hold->threads[i].id, NULL,
                   (void *)(intptr_t)hold->threads[i].signal);
    mem_free(hold);
}

/* Also those that are in no table, since there were too many. The caller's end comes last. */
void hold_bury(struct hold *hold)
{
    siginfo_t info;
    int status;
    while (hold != NULL) {
        int result = waitid(P_PGID, (id_t)hold->pid, &info, WEXITED | WNOWAIT | __WALL);
        if (result != 0 && errno == EINTR)
            continue;
        if (result != 0 || info.si_pid == hold->pid)
            break;
        (void)waitpid(info.si_pid, &status, __WALL);
    }
    mem_free(hold);
}
