/* loop/process: the life of a child.
 *
 *   RUNNING --deadline, flood, process_stop()--> TERMED --kill_after--> KILLED
 *      \_______________ the child exits __________/________________________/
 *                               v
 *                           DRAINING --both pipes at their end, or empty after DRAIN_MS--> OVER
 *
 * A pidfd in the poll says that the child has exited; no SIGCHLD is caught. The child stays a
 * zombie while its pipes drain, so that its number, which is its group's, is nobody else's when
 * the rest of the group is killed; it is reaped right after. */
#include "loop/process.h"

#include "base/mem.h"
#include "loop/private.h"
#include "loop/process_private.h"
#include "loop/task.h"
#include "process/spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum phase { RUNNING, TERMED, KILLED, DRAINING, OVER };

enum {
    DRAIN_MS = 500,
    DRAINS_MOST = 20,
    KILL_AFTER_MS = 500,
    OUTPUT_MAX = 1 << 20,
    INPUT_MAX = 64 << 20,
    READ_BYTES = 16 << 10,
    READS_A_TURN = 8
};

struct stream {
    uv_poll_t poll;
    int fd; /* -1: closed */
};

struct process {
    struct loop *loop;
    struct task *owner;
    enum phase phase;
    pid_t pid;
    struct stream input, output, errors, exit;
    unsigned handles; /* uv_poll_t that libuv still holds */
    bool freed;       /* by the owner; memory goes with the last handle */
    struct timer timer;
    unsigned drains;
    uint64_t timeout_ms, kill_after_ms;

    bool timed_out, flooded, signaled;
    int status;

    bool lines_wanted;
    struct lines lines;
    char *line; /* what process_line() returned last */
    struct capture kept_output, kept_errors;

    struct buf queue; /* for stdin */
    size_t sent;      /* of the queue */
    bool close_input; /* once the queue is sent */
};

/* --- streams --- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct process *process = handle->data;
    process->handles--;
    if (process->freed && process->handles == 0)
        mem_free(process);
}

static int stream_open(struct process *process, struct stream *stream, int fd)
{
    int status = uv_poll_init(&process->loop->uv, &stream->poll, fd);
    if (status != 0)
        return status;
    stream->poll.data = process;
    stream->fd = fd;
    process->handles++;
    return 0;
}

static void stream_close(struct stream *stream)
{
    if (stream->fd < 0)
        return;
    uv_close((uv_handle_t *)&stream->poll, on_handle_closed); /* leaves the poll set at once */
    close(stream->fd);
    stream->fd = -1;
}

/* --- the end --- */

static void signal_group(const struct process *process, int number)
{
    if (process->pid != 0)
        kill(-process->pid, number); /* at worst nobody is left in the group */
}

static void finish(struct process *process)
{
    process->phase = OVER;
    timer_stop(&process->timer);
    stream_close(&process->input);
    stream_close(&process->output);
    stream_close(&process->errors);
    stream_close(&process->exit);
    signal_group(process, SIGKILL);
    (void)spawn_reap(process->pid);
    process->pid = 0;
    task_complete(process->owner);
}

static void finish_if_drained(struct process *process)
{
    if (process->phase == DRAINING && process->output.fd < 0 && process->errors.fd < 0)
        finish(process);
}

static void on_timer(struct timer *timer);

/* True where the child has exited; its status is noted, it is not reaped. */
static bool note_exit(struct process *process)
{
    siginfo_t info = {.si_pid = 0};
    int result = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (result != 0 && errno == ECHILD)
        loop_die("child %d was reaped by somebody else", (int)process->pid);
    if (result != 0 || info.si_pid == 0)
        return false;
    process->signaled = info.si_code != CLD_EXITED;
    process->status = info.si_status;
    process->phase = DRAINING;
    stream_close(&process->exit);
    stream_close(&process->input);
    timer_call(process->loop, &process->timer, on_timer, DRAIN_MS);
    finish_if_drained(process);
    return true;
}

static void on_exit_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    note_exit(poll->data);
}

static void terminate(struct process *process)
{
    if (process->phase != RUNNING)
        return;
    process->phase = TERMED;
    signal_group(process, SIGTERM);
    timer_call(process->loop, &process->timer, on_timer, process->kill_after_ms);
}

static bool has_more(const struct stream *stream)
{
    struct pollfd polled = {.fd = stream->fd, .events = POLLIN};
    return stream->fd >= 0 && poll(&polled, 1, 0) > 0;
}

/* A grandchild holds a pipe; or it is we who are late, and what the child said is still in it. */
static void drain(struct process *process)
{
    signal_group(process, SIGKILL);
    if ((has_more(&process->output) || has_more(&process->errors)) &&
        ++process->drains < DRAINS_MOST)
        timer_call(process->loop, &process->timer, on_timer, DRAIN_MS);
    else
        finish(process);
}

static void on_timer(struct timer *timer)
{
    struct process *process = container_of(timer, struct process, timer);
    if (process->phase == DRAINING) {
        drain(process);
        return;
    }
    if (note_exit(process)) /* an exit and a deadline in one turn: it was in time */
        return;
    if (process->phase == RUNNING) {
        process->timed_out = true;
        terminate(process);
    } else {
        process->phase = KILLED;
        signal_group(process, SIGKILL);
    }
}

void process_stop(struct process *process)
{
    terminate(process);
}

/* --- output --- */

static void end_of_stream(struct process *process, struct stream *stream)
{
    stream_close(stream);
    finish_if_drained(process);
}

static void read_capture(struct process *process, struct stream *stream, struct capture *capture)
{
    char bytes[READ_BYTES];
    for (int i = 0; i < READS_A_TURN; i++) {
        ssize_t got = read(stream->fd, bytes, sizeof bytes);
        if (got > 0) {
            capture_add(capture, bytes, (size_t)got);
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        end_of_stream(process, stream);
        return;
    }
}

static void flood(struct process *process)
{
    process->flooded = true;
    terminate(process);
    end_of_stream(process, &process->output);
}

/* One read a turn, so that the owner can take lines out before more is read. */
static void read_lines(struct process *process)
{
    if (lines_full(&process->lines)) {
        if (!process->owner->queued) /* it had its turn and left them unread */
            flood(process);
        return;
    }
    size_t room;
    char *target = lines_room(&process->lines, READ_BYTES, &room);
    ssize_t got = read(process->output.fd, target, room);
    if (got > 0) {
        if (lines_added(&process->lines, (size_t)got))
            task_wake(process->owner);
        if (lines_full(&process->lines) && !lines_has_line(&process->lines))
            flood(process);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        end_of_stream(process, &process->output);
    }
}

static void on_output_ready(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct process *process = poll->data;
    if (status < 0)
        end_of_stream(process, &process->output);
    else if (process->lines_wanted)
        read_lines(process);
    else
        read_capture(process, &process->output, &process->kept_output);
}

static void on_errors_ready(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct process *process = poll->data;
    if (status < 0)
        end_of_stream(process, &process->errors);
    else
        read_capture(process, &process->errors, &process->kept_errors);
}

const char *process_output(const struct process *process, size_t *length, uint64_t *dropped)
{
    if (!process->lines_wanted) /* straightens its ring, which is no change that anyone sees */
        return capture_text((struct capture *)&process->kept_output, length, dropped);
    if (dropped != NULL)
        *dropped = 0;
    return lines_rest((struct lines *)&process->lines, length);
}

const char *process_errors(const struct process *process, size_t *length, uint64_t *dropped)
{
    return capture_text((struct capture *)&process->kept_errors, length, dropped);
}

const char *process_line(struct process *process)
{
    const char *line = lines_next(&process->lines);
    mem_free(process->line); /* a copy, since the next read may move what is unread */
    process->line = line != NULL ? mem_strdup(line) : NULL;
    return process->line;
}

/* --- input --- */

static void on_input_ready(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct process *process = poll->data;
    struct buf *queue = &process->queue;
    if (status < 0) { /* the reading end is closed */
        stream_close(&process->input);
        return;
    }
    ssize_t sent = 0;
    if (process->sent < queue->length)
        sent = write(process->input.fd, queue->data + process->sent, queue->length - process->sent);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR)
            stream_close(&process->input);
        return;
    }
    process->sent += (size_t)sent;
    if (process->sent < queue->length)
        return;
    buf_reset(queue);
    process->sent = 0;
    if (process->close_input)
        stream_close(&process->input);
    else
        uv_poll_stop(&process->input.poll);
}

static void send_queue(struct process *process)
{
    uv_poll_start(&process->input.poll, UV_WRITABLE, on_input_ready);
}

int process_write(struct process *process, const void *bytes, size_t length, struct err *err)
{
    if (process->input.fd < 0 || process->close_input)
        return err_set(err, ERR_CHILD, "the child's input is closed");
    struct buf *queue = &process->queue;
    if (length > INPUT_MAX - (queue->length - process->sent))
        return err_set(err, ERR_FULL, "more than 64 MiB wait for the child to read");
    if (process->sent > queue->length / 2) {
        buf_consume(queue, process->sent);
        process->sent = 0;
    }
    buf_add(queue, bytes, length);
    send_queue(process);
    return 0;
}

void process_close_input(struct process *process)
{
    if (process->input.fd < 0)
        return;
    process->close_input = true;
    if (process->sent == process->queue.length)
        stream_close(&process->input);
}

/* --- start, free, read --- */

static int open_streams(struct process *process, const struct spawned *spawned)
{
    struct {
        struct stream *stream;
        int fd, events;
        uv_poll_cb ready;
    } const all[] = {
        {&process->exit, spawned->pidfd, UV_READABLE, on_exit_ready},
        {&process->output, spawned->output, UV_READABLE, on_output_ready},
        {&process->errors, spawned->errors, UV_READABLE, on_errors_ready},
        {&process->input, spawned->input, 0, NULL},
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].fd < 0)
            continue;
        int status = failed != 0 ? failed : stream_open(process, all[i].stream, all[i].fd);
        if (status != 0) {
            failed = status;
            close(all[i].fd);
        } else if (all[i].events != 0) {
            uv_poll_start(&all[i].stream->poll, all[i].events, all[i].ready);
        }
    }
    return failed;
}

struct process *process_start(struct loop *loop, struct task *owner,
                              const struct process_spec *spec, struct err *err)
{
    if (spec->timeout_ms == 0 && !spec->lines) {
        err_set(err, ERR_USAGE, "a child without a time limit");
        return NULL;
    }
    struct spawned spawned;
    if (process_spawn(spec, &spawned, err) != 0)
        return NULL;

    struct process *process = MEM_NEW(struct process);
    process->loop = loop;
    process->owner = owner;
    process->pid = spawned.pid;
    process->timeout_ms = spec->timeout_ms;
    process->kill_after_ms = spec->kill_after_ms > 0 ? spec->kill_after_ms : KILL_AFTER_MS;
    process->lines_wanted = spec->lines;
    process->input.fd = process->output.fd = process->errors.fd = process->exit.fd = -1;
    size_t output_max = spec->output_max > 0 ? spec->output_max : OUTPUT_MAX;
    lines_init(&process->lines, output_max);
    capture_init(&process->kept_output, output_max);
    capture_init(&process->kept_errors, output_max);
    size_t most_input = spec->input_length > INPUT_MAX ? spec->input_length : INPUT_MAX;
    buf_init(&process->queue, 2 * most_input); /* sent bytes stay until they are half of it */

    int status = open_streams(process, &spawned);
    task_expect(owner);
    if (status != 0) {
        err_set(err, ERR_ENVIRONMENT, "cannot poll a child: %s", uv_strerror(status));
        finish(process);
        task_forget(owner);
        process_free(process);
        return NULL;
    }
    if (spec->timeout_ms > 0)
        timer_call(loop, &process->timer, on_timer, spec->timeout_ms);
    if (spec->input != NULL) {
        buf_add(&process->queue, spec->input, spec->input_length);
        process->close_input = true;
        send_queue(process);
    }
    return process;
}

void process_free(struct process *process)
{
    if (process == NULL)
        return;
    if (process->phase != OVER)
        loop_die("process_free() of child %d, which is running", (int)process->pid);
    lines_free(&process->lines);
    mem_free(process->line);
    capture_free(&process->kept_output);
    capture_free(&process->kept_errors);
    buf_free(&process->queue);
    process->freed = true;
    if (process->handles == 0)
        mem_free(process);
}

enum process_outcome process_outcome(const struct process *process)
{
    if (process->phase != OVER)
        return PROCESS_RUNNING;
    if (process->timed_out)
        return PROCESS_TIMEOUT;
    if (process->flooded)
        return PROCESS_FLOODED;
    return process->signaled ? PROCESS_SIGNALED : PROCESS_EXITED;
}

int process_status(const struct process *process)
{
    return process->status;
}

int process_pid(const struct process *process)
{
    return (int)process->pid;
}

void process_describe(const struct process *process, struct buf *out)
{
    switch (process_outcome(process)) {
    case PROCESS_RUNNING:
        buf_addf(out, "running as %d", (int)process->pid);
        return;
    case PROCESS_EXITED:
        buf_addf(out, "exited %d", process->status);
        return;
    case PROCESS_SIGNALED: {
        const char *name = sigabbrev_np(process->status);
        if (name != NULL)
            buf_addf(out, "killed by SIG%s", name);
        else
            buf_addf(out, "killed by signal %d", process->status);
        return;
    }
    case PROCESS_TIMEOUT:
        buf_addf(out, "stopped after %.1f s", (double)process->timeout_ms / 1000.0);
        return;
    case PROCESS_FLOODED:
        buf_addf(out, "stopped: a line longer than %zu bytes, or that much left unread",
                 process->lines.max);
        return;
    }
}
