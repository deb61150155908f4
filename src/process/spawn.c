/* vfork, not fork: the cost of a child does not grow with our memory, and no page of ours is
 * copied on write while something is being timed. Between vfork and exec the child shares our
 * memory, so it runs with every signal blocked until its handlers are reset, and calls nothing
 * but system calls. What fails before exec comes back as an errno and a step through a pipe that
 * exec closes. */
#include "process/spawn.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4U
#endif

#define NS_PER_MS UINT64_C(1000000)
enum { STANDARD = 3 };

enum spawn_step {
    STEP_GROUP,
    STEP_PARENT_GONE,
    STEP_LIMITS,
    STEP_DESCRIPTORS,
    STEP_FOLDER,
    STEP_EXEC
};

static const char *const step_names[] = {
    [STEP_GROUP] = "cannot make a process group for",
    [STEP_PARENT_GONE] = "parent gone before",
    [STEP_LIMITS] = "cannot set the limits of",
    [STEP_DESCRIPTORS] = "cannot set the descriptors of",
    [STEP_FOLDER] = "cannot enter the folder for",
    [STEP_EXEC] = "cannot run",
};

struct failure {
    int step, errno_value;
};

struct plan { /* everything that the child needs, worked out before vfork */
    const struct spawn_spec *spec;
    const char *const *env;
    pid_t parent;
    int sources[STANDARD + SPAWN_PASSED_MAX]; /* become 0, 1, 2, 3... */
    int count;
    int report; /* the pipe that exec closes */
};

/* ---- the child, up to its exec ---- */

static bool set_limit(__rlimit_resource_t resource, uint64_t soft, uint64_t hard)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)soft, .rlim_max = (rlim_t)hard};
    return setrlimit(resource, &limit) == 0;
}

static bool set_limits(const struct spawn_spec *spec)
{
    if (!set_limit(RLIMIT_CORE, 0, 0))
        return false;
    if (spec->memory_max_bytes > 0 &&
        !set_limit(RLIMIT_AS, spec->memory_max_bytes, spec->memory_max_bytes))
        return false;
    if (spec->file_max_bytes > 0 &&
        !set_limit(RLIMIT_FSIZE, spec->file_max_bytes, spec->file_max_bytes))
        return false;
    /* XCPU first, KILL a second later. */
    return spec->cpu_max_s == 0 || set_limit(RLIMIT_CPU, spec->cpu_max_s, spec->cpu_max_s + 1);
}

static void close_from(int first)
{
    if (syscall(SYS_close_range, (unsigned)first, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    struct rlimit limit; /* before Linux 5.11, or where a sandbox knows no close_range */
    int most = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1 << 20
                   ? (int)limit.rlim_cur
                   : 1 << 20;
    for (int fd = first; fd < most; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Moves every source above the targets first, so that no dup2 overwrites one still needed. */
static bool set_descriptors(struct plan *plan)
{
    int above = plan->count;
    for (int i = 0; i < plan->count; i++) {
        bool none = i < STANDARD && plan->sources[i] < 0;
        int given = none ? open("/dev/null", O_RDWR | O_CLOEXEC) : plan->sources[i];
        plan->sources[i] = fcntl(given, F_DUPFD_CLOEXEC, above);
        if (plan->sources[i] < 0)
            return false;
    }
    int report = fcntl(plan->report, F_DUPFD_CLOEXEC, above);
    if (report < 0)
        return false;
    plan->report = report;
    for (int i = 0; i < plan->count; i++) {
        if (dup2(plan->sources[i], i) < 0)
            return false;
    }
    close_from(above);
    return true;
}

static void reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &action, NULL); /* KILL, STOP and libc's own refuse; so be it */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool dies_with(pid_t parent)
{
    /* A parent that died before the prctl sends no signal. */
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent;
}

_Noreturn static void run_child(struct plan *plan)
{
    const struct spawn_spec *spec = plan->spec;
    struct failure failure = {.step = STEP_GROUP};
    if (spec->outlives ? setsid() < 0 : setpgid(0, 0) != 0)
        goto fail;
    failure.step = STEP_PARENT_GONE;
    if (!spec->outlives && !dies_with(plan->parent))
        goto fail;
    failure.step = STEP_DESCRIPTORS;
    if (!set_descriptors(plan))
        goto fail;
    failure.step = STEP_FOLDER;
    if (chdir(spec->folder != NULL ? spec->folder : "/") != 0)
        goto fail;
    failure.step = STEP_LIMITS;
    if (!set_limits(spec))
        goto fail;
    reset_signals();
    failure.step = STEP_EXEC;
    execve(spec->argv[0], (char *const *)spec->argv, (char *const *)plan->env);
fail:
    failure.errno_value = errno;
    ssize_t written = write(plan->report, &failure, sizeof failure);
    (void)written; /* nobody is left to tell */
    _exit(127);
}

__attribute__((noinline)) static pid_t start_child(struct plan *plan)
{
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): see above */
    if (pid == 0)
        run_child(plan); /* NOLINT(clang-analyzer-unix.Vfork): it makes system calls alone */
    return pid;
}

/* ---- starting ---- */

static int vfork_and_exec(struct plan *plan, int report[2], pid_t *pid, struct err *err)
{
    sigset_t all, before;
    struct failure failure;
    ssize_t got;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *pid = start_child(plan);
    int errno_value = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    report[1] = -1;
    if (*pid < 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno_value, "cannot fork");
    do {
        got = read(report[0], &failure, sizeof failure);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof failure)
        return 0;
    (void)spawn_reap(*pid);
    return err_set_errno(err, ERR_ENVIRONMENT, failure.errno_value, "%s %s",
                         step_names[failure.step], plan->spec->argv[0]);
}

int spawn(const struct spawn_spec *spec, const int standard[3], pid_t *pid, int *pidfd,
          struct err *err)
{
    static const char *const no_env[] = {NULL};
    int report[2];
    if (spec->argv == NULL || spec->argv[0] == NULL)
        return err_set(err, ERR_USAGE, "a child without a program");
    if (spec->fd_count > SPAWN_PASSED_MAX)
        return err_set(err, ERR_USAGE, "more than %d descriptors for a child",
                       (int)SPAWN_PASSED_MAX);
    if (pipe2(report, O_CLOEXEC) != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make pipes for %s",
                             spec->argv[0]);
    struct plan plan = {.spec = spec,
                        .env = spec->env != NULL ? spec->env : no_env,
                        .parent = getpid(),
                        .count = STANDARD + (int)spec->fd_count,
                        .report = report[1]};
    memcpy(plan.sources, standard, STANDARD * sizeof plan.sources[0]);
    for (size_t i = 0; i < spec->fd_count; i++)
        plan.sources[STANDARD + i] = spec->fds[i];
    int status = vfork_and_exec(&plan, report, pid, err);
    close(report[0]);
    if (status != 0 || pidfd == NULL)
        return status;
    *pidfd = (int)syscall(SYS_pidfd_open, *pid, 0);
    if (*pidfd >= 0)
        return fcntl(*pidfd, F_SETFD, FD_CLOEXEC);
    status =
        err_set_errno(err, ERR_ENVIRONMENT, errno, "pidfd_open (Linux 5.3 or later is needed)");
    (void)spawn_kill(*pid);
    return status;
}

pid_t spawn_fork(void)
{
    pid_t self = getpid(), child = fork();
    if (child == 0 && !dies_with(self))
        _exit(EXIT_FAILURE);
    return child;
}

siginfo_t spawn_reap(pid_t pid)
{
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)pid, &info, WEXITED) != 0 && errno == EINTR)
        continue;
    return info;
}

siginfo_t spawn_kill(pid_t pid)
{
    kill(-pid, SIGKILL);
    return spawn_reap(pid);
}

/* ---- to its end ---- */

/* Reads what is there; at the end of the stream, or where nobody reads it, fd becomes -1. */
static void take(struct pollfd *stream, struct buf *text)
{
    char chunk[16384];
    if (stream->fd < 0 || stream->revents == 0)
        return;
    ssize_t got = read(stream->fd, chunk, sizeof chunk);
    if (got > 0)
        buf_add(text, chunk, (size_t)got);
    else if (got == 0 || errno != EINTR)
        stream->fd = -1;
}

/* A process's folder of tasks has a link from each, and two more. */
static bool is_crowd(pid_t pid, unsigned threads_max)
{
    char path[40];
    struct stat tasks;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return threads_max > 0 && stat(path, &tasks) == 0 && tasks.st_nlink > (nlink_t)threads_max + 2;
}

/* Until it has exited and both ends are closed; false at the deadline. */
static bool collect(pid_t pid, struct pollfd polled[3], uint64_t deadline_ns, unsigned threads_max,
                    bool *crowd, struct buf *const texts[2])
{
    enum { PATIENCE_MS = 60000, LOOK_MS = 20 };
    const uint64_t wait_ms = threads_max > 0 ? LOOK_MS : PATIENCE_MS;
    while (polled[0].fd >= 0 || polled[1].fd >= 0 || polled[2].fd >= 0) {
        uint64_t now = clock_now_ns();
        if (now >= deadline_ns || (*crowd = is_crowd(pid, threads_max)))
            return *crowd;
        uint64_t left = (deadline_ns - now) / NS_PER_MS + 1;
        if (poll(polled, 3, (int)(left < wait_ms ? left : wait_ms)) <= 0)
            continue;
        for (int i = 0; i < 2; i++)
            take(&polled[i], texts[i]);
        if (polled[2].fd >= 0 && polled[2].revents != 0) {
            kill(-pid, SIGKILL); /* it is not reaped yet: the group is still its own */
            polled[2].fd = -1;
        }
    }
    return true;
}

int spawn_run(const struct spawn_spec *spec, uint64_t timeout_ms, int exit_code, struct buf *out,
              struct buf *errors, struct err *err)
{
    struct buf *const texts[2] = {out, errors};
    const char *name = spec->name != NULL ? spec->name : spec->argv[0];
    int pipes[2][2] = {{-1, -1}, {-1, -1}}, pidfd = -1, status = 0;
    pid_t pid = 0;
    if (timeout_ms == 0)
        return err_set(err, ERR_USAGE, "a child without a time limit");
    for (int i = 0; i < 2; i++)
        if (texts[i] != NULL && pipe2(pipes[i], O_CLOEXEC) != 0)
            status = err_set_errno(err, ERR_ENVIRONMENT, errno, "pipe");
    if (status == 0)
        status = spawn(spec, (int[]){-1, pipes[0][1], pipes[1][1]}, &pid, &pidfd, err);
    for (int i = 0; i < 2; i++)
        if (pipes[i][1] >= 0)
            close(pipes[i][1]);
    if (status == 0) {
        struct pollfd polled[3] = {{.fd = pipes[0][0], .events = POLLIN},
                                   {.fd = pipes[1][0], .events = POLLIN},
                                   {.fd = pidfd, .events = POLLIN}};
        bool crowd = false, in_time = collect(pid, polled, clock_now_ns() + timeout_ms * NS_PER_MS,
                                              spec->threads_max, &crowd, texts);
        siginfo_t info = spawn_kill(pid);
        if (!in_time)
            status = err_set(err, ERR_TIMEOUT, "%s took too long", name);
        else if (crowd)
            status =
                err_set(err, ERR_CHILD, "%s had more than %u threads", name, spec->threads_max);
        else if (info.si_code != CLD_EXITED) {
            (void)err_set(err, ERR_CHILD, "%s was killed by signal %d", name, info.si_status);
            status = info.si_status;
        } else if (info.si_status != exit_code)
            status = err_set(err, ERR_CHILD, "%s exited %d", name, info.si_status);
        close(pidfd);
    }
    for (int i = 0; i < 2; i++)
        if (pipes[i][0] >= 0)
            close(pipes[i][0]);
    return status;
}
