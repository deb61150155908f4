/* loop/process: from a spec to a running child.
 *
 * vfork, not fork: the cost of a child does not grow with our memory, and no page of ours is
 * copied on write while something is being timed. Between vfork and exec the child shares our
 * memory, so it runs with every signal blocked until its handlers are reset, and calls nothing
 * but system calls. What fails before exec comes back as an errno and a step through a pipe that
 * exec closes. */
#include "loop/process_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4U
#endif

enum { PASS_MOST = 16, STANDARD = 3 };

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
    const struct process_spec *spec;
    const char *const *env;
    pid_t parent;
    int sources[STANDARD + PASS_MOST]; /* become 0, 1, 2, 3... */
    int count;
    int report; /* the pipe that exec closes */
};

static bool set_limit(__rlimit_resource_t resource, uint64_t soft, uint64_t hard)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)soft, .rlim_max = (rlim_t)hard};
    return setrlimit(resource, &limit) == 0;
}

static bool set_limits(const struct process_spec *spec)
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
        plan->sources[i] = fcntl(plan->sources[i], F_DUPFD_CLOEXEC, above);
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

_Noreturn static void run_child(struct plan *plan)
{
    const struct process_spec *spec = plan->spec;
    struct failure failure = {.step = STEP_GROUP};
    if (setpgid(0, 0) != 0)
        goto fail;
    failure.step = STEP_PARENT_GONE;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != plan->parent)
        goto fail; /* a parent that died before the prctl sends no signal */
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

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

struct pipes {
    int input[2], output[2], errors[2], report[2]; /* [0] is read, [1] written */
};

static bool open_pipes(struct pipes *pipes, bool with_input)
{
    *pipes = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    if (with_input) {
        if (pipe2(pipes->input, O_CLOEXEC) != 0)
            return false;
    } else {
        pipes->input[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (pipes->input[0] < 0)
            return false;
    }
    return pipe2(pipes->output, O_CLOEXEC) == 0 && pipe2(pipes->errors, O_CLOEXEC) == 0 &&
           pipe2(pipes->report, O_CLOEXEC) == 0;
}

static void close_pipes(struct pipes *pipes)
{
    int *const all[] = {pipes->input, pipes->output, pipes->errors, pipes->report};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        close_fd(&all[i][0]);
        close_fd(&all[i][1]);
    }
}

/* After a failed start: the child has exited or is about to. */
static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static int vfork_and_exec(struct plan *plan, struct pipes *pipes, struct spawned *spawned,
                          struct err *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    spawned->pid = start_child(plan);
    int errno_value = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (spawned->pid < 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno_value, "cannot fork");
    close_fd(&pipes->report[1]);
    struct failure failure;
    ssize_t got;
    do {
        got = read(pipes->report[0], &failure, sizeof failure);
    } while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof failure) {
        reap(spawned->pid);
        return err_set_errno(err, ERR_ENVIRONMENT, failure.errno_value, "%s %s",
                             step_names[failure.step], plan->spec->argv[0]);
    }
    spawned->pidfd = (int)syscall(SYS_pidfd_open, spawned->pid, 0);
    if (spawned->pidfd < 0) {
        errno_value = errno;
        kill(-spawned->pid, SIGKILL);
        reap(spawned->pid);
        return err_set_errno(err, ERR_ENVIRONMENT, errno_value,
                             "pidfd_open (Linux 5.3 or later is needed)");
    }
    return 0;
}

int process_spawn(const struct process_spec *spec, struct spawned *spawned, struct err *err)
{
    static const char *const no_env[] = {NULL};
    if (spec->argv == NULL || spec->argv[0] == NULL)
        return err_set(err, ERR_USAGE, "a child without a program");
    if (spec->pass_count > PASS_MOST)
        return err_set(err, ERR_USAGE, "more than %d descriptors for a child", (int)PASS_MOST);
    struct pipes pipes;
    if (!open_pipes(&pipes, spec->input != NULL || spec->lines)) {
        int errno_value = errno;
        close_pipes(&pipes);
        return err_set_errno(err, ERR_ENVIRONMENT, errno_value, "cannot make pipes for %s",
                             spec->argv[0]);
    }
    struct plan plan = {.spec = spec,
                        .env = spec->env != NULL ? spec->env : no_env,
                        .parent = getpid(),
                        .sources = {pipes.input[0], pipes.output[1], pipes.errors[1]},
                        .count = STANDARD + (int)spec->pass_count,
                        .report = pipes.report[1]};
    for (size_t i = 0; i < spec->pass_count; i++)
        plan.sources[STANDARD + i] = spec->pass_fds[i];
    if (vfork_and_exec(&plan, &pipes, spawned, err) != 0) {
        close_pipes(&pipes);
        return -1;
    }
    spawned->input = pipes.input[1];
    spawned->output = pipes.output[0];
    spawned->errors = pipes.errors[0];
    pipes.input[1] = pipes.output[0] = pipes.errors[0] = -1;
    close_pipes(&pipes);
    return 0;
}
