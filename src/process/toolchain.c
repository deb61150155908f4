#include "process/toolchain.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOOLS = 16, ARGS = 64, PASSED = 4 };

static struct {
    char *name, *path;
} found[TOOLS];

static bool is_program(const char *folder, size_t length, const char *name, char path[512])
{
    int written = snprintf(path, 512, "%.*s/%s", (int)length, folder, name);
    return length > 0 && written > 0 && written < 512 && access(path, X_OK) == 0;
}

/* /usr/bin first: what stands before it on a PATH may be a wrapper that keeps a cache somewhere. */
const char *tool_find(const char *name)
{
    char path[512];
    size_t place = 0;
    for (; place < TOOLS && found[place].name != NULL; place++)
        if (strcmp(found[place].name, name) == 0)
            return found[place].path;
    bool there =
        is_program("/usr/bin", 8, name, path) || is_program("/usr/local/bin", 14, name, path);
    const char *list = getenv("PATH");
    for (const char *at = list != NULL ? list : ""; !there && *at != '\0';) {
        size_t length = strcspn(at, ":");
        there = at[0] == '/' && is_program(at, length, name, path);
        at += length + (at[length] == ':');
    }
    if (place == TOOLS)
        return NULL;
    found[place].name = mem_strdup(name);
    found[place].path = there ? mem_strdup(path) : NULL;
    return found[place].path;
}

const char *tool_prefix(const char *path)
{
    static char prefix[PATH_MAX];
    char real[PATH_MAX];
    if (realpath(path, real) == NULL || strncmp(real, "/usr/", 5) == 0)
        return NULL;
    for (int i = 0; i < 2; i++) { /* .../bin/gcc */
        char *slash = strrchr(real, '/');
        if (slash == NULL || slash == real)
            return NULL;
        *slash = '\0';
    }
    memcpy(prefix, real, sizeof prefix);
    return prefix;
}

/* Passed descriptors go first to numbers above all targets, so that no dup2 closes one to come. */
static int start(const struct tool *tool, const char *const *argv, int out, int errors, pid_t *pid,
                 struct err *err)
{
    static const char *const plain[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    const char *const *env = tool->env != NULL ? tool->env : plain;
    int moved[PASSED];
    size_t passed = tool->fd_count < PASSED ? tool->fd_count : PASSED;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    for (size_t i = 0; i < passed; i++) {
        moved[i] = fcntl(tool->fds[i], F_DUPFD_CLOEXEC, 3 + PASSED);
        posix_spawn_file_actions_adddup2(&actions, moved[i], 3 + (int)i);
    }
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    int result = posix_spawn(pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv,
                             (char *const *)(uintptr_t)env);
    for (size_t i = 0; i < passed; i++)
        if (moved[i] >= 0)
            close(moved[i]);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (result != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, result, "cannot start %s", argv[0]);
    return 0;
}

/* Until both ends are closed; false at the deadline. */
static bool collect(const int fds[2], uint64_t deadline_ns, struct buf *const texts[2])
{
    char chunk[16384];
    struct pollfd polled[2] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
    while (polled[0].fd >= 0 || polled[1].fd >= 0) {
        uint64_t now = clock_now_ns();
        if (now >= deadline_ns)
            return false;
        if (poll(polled, 2, (int)((deadline_ns - now) / 1000000 + 1)) < 0 && errno != EINTR)
            return false;
        for (int i = 0; i < 2; i++) {
            if (polled[i].fd < 0 || polled[i].revents == 0)
                continue;
            ssize_t got = read(polled[i].fd, chunk, sizeof chunk);
            if (got > 0 && texts[i] != NULL)
                buf_add(texts[i], chunk, (size_t)got);
            else if (got == 0 || (got < 0 && errno != EINTR))
                polled[i].fd = -1;
        }
    }
    return true;
}

static int finish(pid_t pid, bool in_time, const char *name, int exit_code, struct err *err)
{
    siginfo_t info = {0};
    if (!in_time)
        kill(-pid, SIGKILL);
    while (waitid(P_PID, (id_t)pid, &info, WEXITED) != 0 && errno == EINTR)
        ;
    if (!in_time)
        return err_set(err, ERR_TIMEOUT, "%s took too long", name);
    if (info.si_code == CLD_EXITED && info.si_status == exit_code)
        return 0;
    return err_set(err, ERR_CHILD, "%s %s %d", name,
                   info.si_code == CLD_EXITED ? "exited" : "was killed by signal", info.si_status);
}

static void sandboxed(const struct tool *tool, const char *all[ARGS])
{
    size_t count = 0;
    const char *prefix = tool_prefix(tool->argv[0]);
    all[count++] = file_program_path();
    all[count++] = "sandbox";
    all[count++] = "--profile";
    all[count++] = tool->profile != NULL ? tool->profile : "tool";
    if (prefix != NULL) {
        all[count++] = "--read";
        all[count++] = prefix;
    }
    for (size_t i = 0; tool->reads != NULL && tool->reads[i] != NULL && i < 8; i++) {
        all[count++] = "--read";
        all[count++] = tool->reads[i];
    }
    if (tool->write != NULL) {
        all[count++] = "--write";
        all[count++] = tool->write;
    }
    all[count++] = "--";
    for (size_t i = 0; tool->argv[i] != NULL && count < ARGS - 1; i++)
        all[count++] = tool->argv[i];
    all[count] = NULL;
}

int tool_run(const struct tool *tool, struct buf *out, struct buf *errors, struct err *err)
{
    const char *all[ARGS];
    int pipes[4] = {-1, -1, -1, -1}, result = -1;
    pid_t pid;
    sandboxed(tool, all);
    if (pipe2(pipes, O_CLOEXEC) != 0 || pipe2(pipes + 2, O_CLOEXEC) != 0)
        err_set_errno(err, ERR_ENVIRONMENT, errno, "pipe");
    else
        result = start(tool, all, pipes[1], pipes[3], &pid, err);
    for (int i = 1; i < 4; i += 2)
        if (pipes[i] >= 0)
            close(pipes[i]);
    if (result == 0) {
        bool in_time = collect((int[]){pipes[0], pipes[2]},
                               clock_now_ns() + tool->timeout_ms * UINT64_C(1000000),
                               (struct buf *[]){out, errors});
        result = finish(pid, in_time, tool->argv[0], tool->exit_code, err);
    }
    for (int i = 0; i < 4; i += 2)
        if (pipes[i] >= 0)
            close(pipes[i]);
    return result;
}
