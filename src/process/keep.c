#include "process/keep.h"

#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_MS = 300, SWEEP_MS = 5, SWEEPS_MOST = 1600, NICE = 10, EXIT_NO_PROGRAM = 127 };

/* Children of ours alone: what is below one of them becomes ours when that one is gone. */
static void kill_children(void)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    if (length == sizeof text - 1) /* the last number may be cut */
        *strrchr(text, ' ') = '\0';
    for (char *at = text, *end; *at; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            break;
        if (pid > 1)
            kill((pid_t)pid, SIGKILL);
    }
}

static bool await(const sigset_t *signals, int ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    int number = sigtimedwait(signals, NULL, &time);
    return number == SIGTERM || number == SIGINT || number == SIGHUP;
}

/* Reaps what has ended, the program among it; false when nobody is left. */
static bool reap(pid_t program, int *status, bool *ended)
{
    for (;;) {
        int one;
        pid_t pid = waitpid(-1, &one, WNOHANG);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return pid == 0;
        if (pid == program) {
            *status = one;
            *ended = true;
        }
    }
}

static int end_as(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

static void become(char **words, const sigset_t *before)
{
    setpgid(0, 0);                      /* so that it can end its group without ending us */
    setpriority(PRIO_PROCESS, 0, NICE); /* lanes measure beside it */
    sigprocmask(SIG_SETMASK, before, NULL);
    execv(words[0], words);
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    _exit(EXIT_NO_PROGRAM);
}

int keep_main(int argc, char **argv)
{
    sigset_t signals, before;
    bool ended = false;
    int status = 0;
    if (argc < 1)
        return EXIT_NO_PROGRAM;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &before);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0)
        return EXIT_NO_PROGRAM;
    pid_t program = spawn_fork();
    if (program == 0)
        become(argv, &before);
    for (int fd = 0; fd < 3; fd++) /* whoever reads its output sees the end of it */
        close(fd);
    while (program > 0 && !ended && reap(program, &status, &ended) && !ended)
        if (await(&signals, 1000)) {
            kill(-program, SIGTERM);
            for (int ms = 0; ms < GRACE_MS && !ended; ms += SWEEP_MS) {
                (void)await(&signals, SWEEP_MS);
                (void)reap(program, &status, &ended);
            }
            break;
        }
    for (int i = 0; i < SWEEPS_MOST; i++) {
        kill_children();
        if (!reap(program, &status, &ended))
            break;
        (void)await(&signals, SWEEP_MS);
    }
    return end_as(status);
}
