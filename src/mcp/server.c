/* mcp/server: bytes in, lines out. Nothing blocks: input is read when there is some, output is
 * written in pieces that a pipe has room for. A client that does not read is not read from either.
 *
 *   SERVING -- input over, output gone, a signal --> ENDING (children stop) -> done
 */
#include "mcp/private.h"

#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { SERVING, ENDING, STATES };
static const char *const states[STATES] = {"serving", "ending"};
static const uint32_t moves[STATES] = {1u << ENDING, 0};

enum {
    READ_BYTES = 64 << 10,
    PIECE = 4096, /* PIPE_BUF: a pipe that can be written takes so much at once */
    PIECES_A_TURN = 64,
    UNREAD_MOST = 1 << 20,
    OUTPUT_MOST = 256 << 20,
    RETRY_MS = 10
};

static const int signal_numbers[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

/* ---- output ---- */

static bool can_write(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLOUT};
    return poll(&poller, 1, 0) == 1;
}

/* False: nobody will read any more. */
static bool write_some(struct mcp_server *server)
{
    size_t done = 0;
    bool alive = true;
    for (int i = 0; i < PIECES_A_TURN && done < server->output.length && can_write(server->out);
         i++) {
        size_t left = server->output.length - done;
        ssize_t written =
            write(server->out, buf_text(&server->output) + done, left < PIECE ? left : PIECE);
        if (written < 0 && errno != EINTR && errno != EAGAIN) {
            alive = false;
            break;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    buf_consume(&server->output, done);
    if (alive && server->output.length > 0 && !server->retry.armed)
        timer_start(server->task.loop, &server->retry, &server->task, RETRY_MS);
    return alive;
}

/* ---- input ---- */

static void take_lines(struct mcp_server *server)
{
    const char *text = buf_text(&server->input);
    size_t begin = 0;
    for (const char *end;
         (end = memchr(text + begin, '\n', server->input.length - begin)) != NULL;) {
        size_t length = (size_t)(end - text) - begin;
        if (!server->too_long)
            rpc_take(server, text + begin, length);
        server->too_long = false;
        begin += length + 1;
    }
    buf_consume(&server->input, begin);
    if (server->input.length >= MCP_LINE_MOST) {
        if (!server->too_long)
            rpc_error(server, NULL, RPC_INVALID, "a message takes at most 8 MiB");
        server->too_long = true;
    }
    if (server->too_long)
        buf_reset(&server->input);
}

static void read_some(struct mcp_server *server)
{
    char bytes[READ_BYTES];
    server->readable.ready = false;
    ssize_t length = read(server->in, bytes, sizeof bytes);
    if (length > 0) {
        buf_add(&server->input, bytes, (size_t)length);
        take_lines(server);
    } else if (length == 0 || (errno != EINTR && errno != EAGAIN)) {
        server->input_over = true;
    }
}

static enum task_result await_input(struct mcp_server *server)
{
    if (server->output.length > UNREAD_MOST) /* the timer wakes */
        return TASK_WAIT;
    server->is_file =
        readable_start(server->task.loop, &server->readable, &server->task, server->in, NULL) != 0;
    return server->is_file ? TASK_AGAIN : TASK_WAIT;
}

/* ---- the task ---- */

static bool signalled(const struct mcp_server *server)
{
    for (int i = 0; i < SIGNALS; i++)
        if (server->signals[i].count > 0)
            return true;
    return false;
}

static void end(struct mcp_server *server)
{
    readable_stop(&server->readable);
    timer_stop(&server->retry);
    for (int i = 0; i < SIGNALS; i++)
        if (server->signals[i].handle)
            signal_watch_stop(&server->signals[i]);
    rpc_calls_cancel(server);
    task_move(&server->task, ENDING);
}

static enum task_result server_step(struct task *task)
{
    struct mcp_server *server = container_of(task, struct mcp_server, task);
    rpc_calls_reap(server);
    if (task->state == ENDING)
        return server->call_count == 0 ? TASK_DONE : TASK_WAIT;
    if ((server->readable.ready || server->is_file) && server->output.length <= UNREAD_MOST)
        read_some(server);
    bool alive = write_some(server);
    if (server->input_over || !alive || signalled(server)) {
        end(server);
        return server->call_count == 0 ? TASK_DONE : TASK_WAIT;
    }
    return await_input(server);
}

static const struct task_type server_type = {"mcp", states, moves, STATES, server_step, NULL};

struct mcp_server *mcp_server_new(struct loop *loop, const struct mcp_site *site, int in, int out)
{
    struct mcp_server *server = MEM_NEW(struct mcp_server);
    struct err ignored;
    server->site = site;
    server->in = in;
    server->out = out;
    buf_init(&server->input, MCP_LINE_MOST + READ_BYTES);
    buf_init(&server->output, OUTPUT_MOST);
    list_init(&server->calls);
    slots_init(&server->alone, "measuring calls", 1);
    slots_init(&server->beside, "calls", 4);
    task_start(loop, &server->task, &server_type, NULL, "mcp");
    for (int i = 0; i < SIGNALS; i++)
        (void)!signal_watch_start(loop, &server->signals[i], &server->task, signal_numbers[i],
                                  &ignored);
    return server;
}

void mcp_server_free(struct mcp_server *server)
{
    buf_free(&server->input);
    buf_free(&server->output);
    mem_free(server);
}
