#include "eval/cpu/host.h"

#include "base/clock.h"
#include "base/mem.h"
#include "eval/cpu/artifact.h"
#include "eval/cpu/cpu.h"
#include "eval/cpu/hold.h"
#include "eval/cpu/private.h"
#include "process/sandbox.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS       UINT64_C(1000000000)
#define THREADS_MESSAGE "has more than %d threads at once"
enum { START_S = 30, LOAD_S = 20, LAST_WORDS = 200, LOOK_NS = 20000000 };

/* ---- how a runner ends ---- */

/* The last line that the process wrote, harmless and short; "" where it was silent. */
static void last_words(struct host *host, char words[LAST_WORDS])
{
    char tail[4096];
    size_t length = 0;
    ssize_t got;
    /* A pipe holds 64 KiB: whoever wrote more is still writing, or dead. */
    while ((got = read(host->errors, tail, sizeof tail)) > 0)
        length = (size_t)got;
    while (length > 0 && isspace((unsigned char)tail[length - 1]))
        length--;
    size_t start = length;
    while (start > 0 && tail[start - 1] != '\n')
        start--;
    size_t kept = 0;
    for (size_t i = start; i < length && kept < LAST_WORDS - 1; i++)
        words[kept++] = isprint((unsigned char)tail[i]) ? tail[i] : '?';
    words[kept] = '\0';
}

static bool hit_guard(struct host *host, const char *words)
{
    char *stop;
    size_t length = sizeof WIRE_GUARD_HIT - 1;
    if (strncmp(words, WIRE_GUARD_HIT, length) != 0)
        return false;
    host->subject.hit_offset = strtoull(words + length, &stop, 16);
    host->subject.hit = stop == words + length + 16 && *stop == '\0';
    return host->subject.hit;
}

static int ended(struct host *host, struct err *err)
{
    siginfo_t info = {0};
    char words[LAST_WORDS];
    kill(-host->subject.pid, SIGKILL);
    hold_bury(host->hold);
    host->hold = NULL;
    while (waitid(P_PID, (id_t)host->subject.pid, &info, WEXITED) != 0 && errno == EINTR)
        ;
    host->reaped = true;
    last_words(host, words);
    /* What says that somebody else ended it: anybody can write that, and leave as a runner does. */
    static const char forged[] = "killed by SIGKILL";
    const char *gap = words[0] != '\0' ? ": " : "";
    if (info.si_code == CLD_EXITED && info.si_status == RUNNER_EXIT && hit_guard(host, words))
        return err_set(err, ERR_CHILD, "read out of bounds of an input");
    if (info.si_code == CLD_EXITED && info.si_status == RUNNER_EXIT && words[0] != '\0' &&
        strncmp(words, forged, sizeof forged - 1) != 0)
        return err_set(err, ERR_CHILD, "%s", words);
    if (info.si_code == CLD_EXITED)
        return err_set(err, ERR_CHILD, "exited during a call (status %d)%s%s", info.si_status, gap,
                       words);
    const char *name = sigabbrev_np(info.si_status);
    const char *why =
        info.si_status == SIGSYS ? " (it asked the kernel for what no kernel needs)" : "";
    return err_set(err, ERR_CHILD, "killed by SIG%s%s%s%s", name != NULL ? name : "?", why, gap,
                   words);
}

static void end(struct host *host)
{
    struct err ignored;
    if (!host->reaped && host->subject.pid > 0)
        (void)ended(host, &ignored);
}

/* ---- the two words ---- */

int host_go(struct host *host, struct err *err)
{
    const uint64_t one = 1;
    while (write(host->go, &one, sizeof one) != (ssize_t)sizeof one)
        if (errno != EINTR)
            return err_set_errno(err, ERR_IO, errno, "runner: go");
    return 0;
}

/* By the kernel's account, whatever the artifact calls what makes them. */
static unsigned count_threads(int pid)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    return stat(path, &status) == 0 && status.st_nlink > 3 ? (unsigned)status.st_nlink - 3 : 0;
}

/* Threads that came and went have used a core. */
static bool others_have_run(struct host *host)
{
    enum { CLOCK_NS = 2000 };
    int64_t all = process_cpu_ns(host->subject.pid);
    int64_t others = all - (int64_t)thread_times(host->subject.pid, host->subject.pid).cpu_ns;
    int64_t before = host->others_ns;
    host->others_ns = others;
    return all > 0 && before >= 0 && others > before + CLOCK_NS;
}

static void saw_threads(struct host *host, unsigned count)
{
    host->subject.threads = count > host->subject.threads ? count : host->subject.threads;
}

/* True once the runner has spoken or ended; false at the deadline. */
static bool poll_once(struct host *host, uint64_t deadline_ns, bool *died)
{
    struct pollfd fds[2] = {{.fd = host->done, .events = POLLIN},
                            {.fd = host->pidfd, .events = POLLIN}};
    for (;;) {
        uint64_t now = clock_now_ns();
        uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
        struct timespec wait = {.tv_sec = (time_t)(left / SECOND_NS),
                                .tv_nsec = (long)(left % SECOND_NS)};
        int ready = ppoll(fds, 2, &wait, NULL);
        if (ready < 0 && errno == EINTR)
            continue;
        *died = fds[1].revents != 0;
        return ready > 0;
    }
}

int host_await(struct host *host, unsigned times, uint64_t deadline_ns, unsigned *said,
               struct err *err)
{
    *said = 0;
    while (*said < times) {
        uint64_t count = 0, look_ns = clock_now_ns() + LOOK_NS;
        bool died = false, last = look_ns >= deadline_ns;
        bool ready = poll_once(host, last ? deadline_ns : look_ns, &died);
        if (read(host->done, &count, sizeof count) == (ssize_t)sizeof count)
            *said += count < 1000 ? (unsigned)count : 1000;
        if (died)
            return ended(host, err);
        if (!ready && count_threads(host->subject.pid) > HOLD_THREADS_MOST) {
            end(host);
            return err_set(err, ERR_CHILD, THREADS_MESSAGE, HOLD_THREADS_MOST);
        }
        if (!ready && last) {
            end(host);
            return err_set(err, ERR_TIMEOUT, "no answer in time");
        }
    }
    if (*said == times)
        return 0;
    end(host);
    return err_set(err, ERR_PROTOCOL, "the runner said more than it was asked");
}

int host_wait_warm(struct host *host, struct err *err)
{
    unsigned said;
    if (host->warm) {
        struct pollfd death = {.fd = host->pidfd, .events = POLLIN};
        return poll(&death, 1, 0) > 0 ? ended(host, err) : 0;
    }
    if (host_await(host, 1, clock_now_ns() + START_S * SECOND_NS, &said, err) != 0) {
        err->code = ERR_ENVIRONMENT;
        return err_wrap(err, "runner");
    }
    host->warm = true;
    return 0;
}

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
static int check_filters(struct host *host, struct err *err)
{
    char path[64];
    struct sandbox_facts facts;
    sandbox_probe(&facts);
    snprintf(path, sizeof path, "/proc/%d/status", host->subject.pid);
    long ours = filters_of("/proc/self/status"), theirs = filters_of(path);
    if (!facts.seccomp || ours < 0 || theirs < 0 || theirs == ours + 1)
        return 0;
    end(host);
    return err_set(err, ERR_ENVIRONMENT, "the runner has %ld filters of system calls, expected %ld",
                   theirs, ours + 1);
}

/* One OpenMP thread a core, this one on the first; or one thread alone. Whoever makes threads of
 * its own gets all cores for all of them. */
static void bind_first(struct host *host)
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
    (void)sched_setaffinity(host->subject.pid, sizeof set, &set);
}

int host_load(struct host *host, const char *artifact, struct err *err)
{
    unsigned said;
    if (strlen(artifact) >= WIRE_PATH_MAX)
        return err_set(err, ERR_LIMIT, "the artifact's path is too long");
    strcpy(host->control->artifact, artifact);
    /* Up to the first word nothing of the candidate's has run. That word is taken before it can. */
    uint64_t deadline_ns = clock_now_ns() + LOAD_S * SECOND_NS;
    if (host_go(host, err) != 0)
        return -1;
    if (host_await(host, 1, deadline_ns, &said, err) != 0) {
        err->code = ERR_ENVIRONMENT;
        return err_wrap(err, "runner");
    }
    if (check_filters(host, err) != 0 || host_go(host, err) != 0)
        return -1;
    if (host_await(host, 1, deadline_ns, &said, err) != 0)
        return err_wrap(err, "while it was loaded");
    bind_first(host);
    memset(host->control->artifact, 0, sizeof host->control->artifact);
    return 0;
}

/* ---- the subject ---- */

static void resume(struct subject *subject)
{
    struct host *host = (struct host *)subject;
    if (host->paused && !host->reaped)
        kill(-subject->pid, SIGCONT);
    host->paused = false;
}

/* Confirmed: when this returns no thread of the group runs. */
static void pause_group(struct subject *subject)
{
    struct host *host = (struct host *)subject;
    siginfo_t info = {0};
    host_settle();
    if (host->paused || host->reaped)
        return;
    if (host->hold == NULL)
        kill(-subject->pid, SIGSTOP);
    hold_end(host->hold);
    host->hold = NULL;
    while (waitid(P_PID, (id_t)subject->pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0)
        if (errno != EINTR)
            return;
    if (info.si_code == CLD_STOPPED)
        (void)waitid(P_PID, (id_t)subject->pid, &info, WSTOPPED | WNOHANG);
    unsigned others = others_have_run(host) ? 1 : 0, there = count_threads(subject->pid);
    saw_threads(host, there > others ? there : others);
    host->paused = true;
}

/* ---- held ---- */

static int held_ended(struct host *host, enum hold_end how, struct err *err)
{
    uint64_t count;
    if (how == HOLD_DIED)
        return ended(host, err);
    if (how == HOLD_DONE && read(host->done, &count, sizeof count) == (ssize_t)sizeof count &&
        count == 1)
        return 0;
    end(host);
    if (how == HOLD_LATE)
        return err_set(err, ERR_TIMEOUT, "no answer in time");
    if (how == HOLD_CROWDED)
        return err_set(err, ERR_CHILD, THREADS_MESSAGE, HOLD_THREADS_MOST);
    return err_set(err, ERR_PROTOCOL, "another thread than the caller's said \"done\"");
}

/* The word is there before it is let go. */
static int call_held(struct host *host, uint64_t deadline_ns, struct err *err)
{
    if (host_go(host, err) != 0)
        return -1;
    host->paused = false;
    enum hold_end how = hold_run(host->hold, deadline_ns);
    saw_threads(host, hold_threads(host->hold));
    return held_ended(host, how, err);
}

static void tell(struct host *host, const struct call *call)
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
static void begin_hold(struct host *host)
{
    host->hold = hold_begin(host->subject.pid, host->subject.hold_ns);
    if (host->hold == NULL && errno != ESRCH && !hold_permitted())
        host->subject.unheld = true;
}

static int call_runner(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                       struct err *err)
{
    struct host *host = (struct host *)subject;
    uint64_t stale;
    unsigned said;
    if (host->reaped)
        return err_set(err, ERR_CHILD, "the runner has ended");
    if (host->hold != NULL || subject->hold_ns != 0)
        pause_group(subject);
    if (subject->hold_ns != 0)
        begin_hold(host);
    subject->hold_ns = 0;
    if (read(host->done, &stale, sizeof stale) > 0) {
        end(host);
        return err_set(err, ERR_PROTOCOL, "the kernel said \"done\" before it was called");
    }
    if (subject->threads > HOLD_THREADS_MOST) {
        end(host);
        return err_set(err, ERR_CHILD, THREADS_MESSAGE, HOLD_THREADS_MOST);
    }
    tell(host, call);
    uint64_t timeout_ns = call->timeout_ms * UINT64_C(1000000);
    uint64_t start = clock_now_ns();
    int result = -1;
    if (host->hold != NULL)
        result = call_held(host, start + timeout_ns, err);
    else if (host_go(host, err) == 0) {
        resume(subject); /* the clock runs: time to wake up is its own */
        result = host_await(host, 1, start + timeout_ns, &said, err);
    }
    *elapsed_ns = clock_now_ns() - start;
    if (result != 0 && err->code == ERR_TIMEOUT)
        return err_set(err, ERR_TIMEOUT, "did not answer within %.3g s",
                       (double)call->timeout_ms / 1e3);
    return result;
}

void host_close(struct host *host)
{
    if (host == NULL)
        return;
    end(host);
    int fds[] = {host->pidfd, host->go, host->done, host->errors};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (host->control != NULL)
        munmap(host->control, sizeof *host->control);
    mem_free((void *)(uintptr_t)host->env);
    mem_free(host);
}

static void close_subject(struct subject *subject)
{
    host_close((struct host *)subject);
}

static const struct subject_ops runner_ops = {call_runner, pause_group, resume, close_subject};

int cpu_open(const struct lane_facts *lane, const struct region *region, const char *artifact,
             const char *const *env, struct subject **subject, struct err *err)
{
    struct host *host = NULL;
    /* A spare that died meanwhile is ours to replace; what happens with the artifact in it is not.
     */
    for (int tries = 0; host == NULL && tries < 2; tries++) {
        if (host_take(lane, region, env, &host, err) != 0)
            return -1;
        if (host_load(host, artifact, err) == 0)
            break;
        host_close(host);
        host = NULL;
        if (err->code != ERR_ENVIRONMENT)
            break;
    }
    if (host == NULL)
        return -1;
    host->subject.ops = &runner_ops;
    host->subject.name = "runner";
    host->subject.guards = true;
    host->subject.holds = true;
    host->subject.wakes_itself = true;
    *subject = &host->subject;
    return 0;
}

int64_t cpu_runner_switches(const struct subject *subject)
{
    return subject->ops == &runner_ops ? process_switches(subject->pid) : -1;
}

int64_t cpu_runner_cpu_ns(const struct subject *subject)
{
    return subject->ops == &runner_ops ? process_cpu_ns(subject->pid) : -1;
}
