#include "process/python_child.h"

#include "base/clock.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_MOST = 1 << 20, ERRORS_SHOWN = 4096 };

#define NS_PER_MS UINT64_C(1000000)

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

int child_start(struct child *child, const char *const *argv, const char *const *env,
                const int *pass, size_t pass_count, struct err *err)
{
    int input[2] = {-1, -1}, output[2] = {-1, -1};
    int errors = memfd_create("twagent-errors", MFD_CLOEXEC);
    /* A socket, not a pipe, for what it is told: a dead reader is EPIPE then, never SIGPIPE. */
    if (errors < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0 ||
        pipe2(output, O_CLOEXEC) != 0) {
        err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make pipes for %s", argv[0]);
        goto fail;
    }
    const struct spawn_spec spec = {.argv = argv, .env = env, .fds = pass, .fd_count = pass_count};
    pid_t pid;
    if (spawn(&spec, (int[]){input[0], output[1], errors}, &pid, NULL, err) != 0)
        goto fail;
    close(input[0]);
    close(output[1]);
    buf_init(&child->pending, LINE_MOST);
    buf_init(&child->line, LINE_MOST);
    child->pid = pid;
    child->input = input[1];
    child->output = output[0];
    child->errors = errors;
    return 0;
fail:
    close_pair(input);
    close_pair(output);
    if (errors >= 0)
        close(errors);
    return -1;
}

int child_send(struct child *child, const char *text, size_t length, struct err *err)
{
    while (length > 0) {
        ssize_t written = send(child->input, text, length, MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return err_set_errno(err, ERR_CHILD, errno, "the reference is gone");
        text += written;
        length -= (size_t)written;
    }
    return 0;
}

/* The last line that is not empty of what the child wrote to stderr. */
static void last_words(const struct child *child, char *text, size_t size)
{
    text[0] = '\0';
    char tail[ERRORS_SHOWN + 1];
    off_t end = lseek(child->errors, 0, SEEK_END);
    off_t from = end > ERRORS_SHOWN ? end - ERRORS_SHOWN : 0;
    ssize_t got = end > 0 ? pread(child->errors, tail, ERRORS_SHOWN, from) : 0;
    while (got > 0 && (tail[got - 1] == '\n' || tail[got - 1] == ' '))
        got--;
    if (got <= 0)
        return;
    tail[got] = '\0';
    const char *line = strrchr(tail, '\n');
    line = line != NULL ? line + 1 : tail;
    size_t length = strlen(line);
    length = length < size ? length : size - 1;
    memcpy(text, line, length);
    text[length] = '\0';
}

static void forget(struct child *child)
{
    close(child->input);
    close(child->output);
    close(child->errors);
    buf_free(&child->pending);
    buf_free(&child->line);
    *child = (struct child){0};
}

/* The child closed its stdout: says how it ended. */
static int ended(struct child *child, struct err *err)
{
    char words[200];
    /* What closed its pipe is of no use even where it still runs. */
    siginfo_t info = spawn_kill(child->pid);
    last_words(child, words, sizeof words);
    forget(child);
    const char *before = words[0] != '\0' ? ": " : "";
    if (info.si_code == CLD_EXITED)
        return err_set(err, ERR_CHILD, "the reference exited %d%s%s", info.si_status, before,
                       words);
    if (info.si_status == SIGKILL)
        return err_set(err, ERR_CHILD, "the reference was killed%s%s", before, words);
    return err_set(err, ERR_CHILD, "the reference was killed by SIG%s%s%s",
                   sigabbrev_np(info.si_status), before, words);
}

static bool take_line(struct child *child)
{
    const char *start = buf_text(&child->pending);
    const char *newline = memchr(start, '\n', child->pending.length);
    if (newline == NULL)
        return false;
    size_t length = (size_t)(newline - start);
    buf_reset(&child->line);
    buf_add(&child->line, start, length);
    buf_consume(&child->pending, length + 1);
    return true;
}

int child_line(struct child *child, uint64_t timeout_ms, const char **line, struct err *err)
{
    uint64_t deadline = clock_now_ns() + timeout_ms * NS_PER_MS;
    while (!take_line(child)) {
        uint64_t now = clock_now_ns();
        uint64_t left = deadline > now ? (deadline - now + NS_PER_MS - 1) / NS_PER_MS : 0;
        if (left == 0 || child->pending.dropped > 0) {
            bool flooded = child->pending.dropped > 0;
            child_stop(child);
            if (flooded)
                return err_set(err, ERR_CHILD, "the reference answered more than a line holds");
            return err_set(err, ERR_TIMEOUT, "the reference took longer than %.1f s",
                           (double)timeout_ms / 1e3);
        }
        struct pollfd ready = {.fd = child->output, .events = POLLIN};
        int count = poll(&ready, 1, left > 60000 ? 60000 : (int)left);
        if (count <= 0)
            continue;
        char bytes[4096];
        ssize_t got = read(child->output, bytes, sizeof bytes);
        if (got > 0)
            buf_add(&child->pending, bytes, (size_t)got);
        else if (got == 0 || errno != EINTR)
            return ended(child, err);
    }
    *line = buf_text(&child->line);
    return 0;
}

bool child_said(const struct child *child)
{
    struct pollfd ready = {.fd = child->output, .events = POLLIN};
    return child->pending.length > 0 || poll(&ready, 1, 0) != 0;
}

void child_pause(struct child *child)
{
    if (child->pid == 0 || kill(-child->pid, SIGSTOP) != 0)
        return;
    siginfo_t info;
    /* An end is left for child_line() to find and reap. */
    while (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
           errno == EINTR)
        continue;
}

void child_resume(struct child *child)
{
    if (child->pid != 0)
        kill(-child->pid, SIGCONT);
}

void child_stop(struct child *child)
{
    if (child->pid == 0)
        return;
    (void)spawn_kill(child->pid);
    forget(child);
}
