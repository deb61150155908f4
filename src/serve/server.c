/* serve/server: libmicrohttpd's own epoll, watched by the loop.
 *
 *   OPEN (each wake: what came in, what was made, what is late) -> ENDING (the last call) -> done
 */
#include "serve/private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPEN, ENDING, STATES };
static const char *const states[STATES] = {"open", "ending"};
static const uint32_t moves[STATES] = {1u << ENDING, 0};

/* A client that drips its request, or takes its answer a byte at a time, is never silent: what is
 * owed as a whole has a limit of its own. libmicrohttpd sees the end and closes. */
static void drop_late(struct serve *serve, uint64_t now, uint64_t starved_ms)
{
    list_each (link, &serve->clients) {
        struct client *client = container_of(link, struct client, link);
        if (client->deadline_ms)
            client->deadline_ms += starved_ms; /* a server at the lowest priority was late itself */
        if (client->deadline_ms && now > client->deadline_ms && client->fd >= 0) {
            client->deadline_ms = 0;
            (void)shutdown(client->fd, SHUT_RDWR);
        }
    }
}

static void tick(struct serve *serve)
{
    uint64_t now = clock_now_ms();
    if (now - serve->ticked_ms < TICK_MS)
        return;
    uint64_t starved_ms = now - serve->ticked_ms - TICK_MS;
    serve->ticked_ms = now;
    drop_late(serve, now, starved_ms < HEADER_MS ? starved_ms : HEADER_MS);
    documents_tick(serve);
    viewers_look(serve);
    if (now - serve->beaten_ms >= HEARTBEAT_MS) {
        serve->beaten_ms = now;
        viewers_beat(serve);
    }
}

/* Until the library's next time-out, and a tick while somebody is connected. */
static void sleep_until(struct serve *serve)
{
    MHD_UNSIGNED_LONG_LONG left = 0;
    bool limited = MHD_get_timeout(serve->daemon, &left) == MHD_YES;
    uint64_t wait = limited && left < TICK_MS ? left : TICK_MS;
    if (list_empty(&serve->clients) && !limited)
        timer_stop(&serve->timer);
    else
        timer_start(serve->task.loop, &serve->timer, &serve->task, wait);
}

static enum task_result end(struct serve *serve)
{
    readable_stop(&serve->readable);
    timer_stop(&serve->timer);
    if (!serve->told_end && serve->site->end)
        serve->site->end(serve->site->context);
    serve->told_end = true;
    if (serve->work.active || serve->posts > 0) /* neither can be called off */
        return TASK_WAIT;
    documents_end(serve);
    viewers_resume_all(serve);
    (void)MHD_run(serve->daemon);
    MHD_stop_daemon(serve->daemon);
    serve->daemon = NULL;
    signal_watch_stop(&serve->interrupt);
    signal_watch_stop(&serve->terminate);
    return TASK_DONE;
}

static enum task_result serve_step(struct task *task)
{
    struct serve *serve = container_of(task, struct serve, task);
    if (serve->interrupt.count + serve->terminate.count > 0)
        task->cancel_requested = true;
    if (!task->cancel_requested) {
        (void)MHD_run(serve->daemon);
        tick(serve);
        documents_step(serve);
        (void)MHD_run(serve->daemon); /* what was resumed */
        sleep_until(serve);
        if (readable_start(task->loop, &serve->readable, task, serve->epoll_fd, &serve->err))
            task->cancel_requested = true;
    }
    if (!task->cancel_requested)
        return TASK_WAIT;
    if (task->state != ENDING)
        task_move(task, ENDING);
    return end(serve);
}

static const struct task_type serve_type = {"serve", states, moves, STATES, serve_step, NULL};

static void complain(void *context, const char *format, va_list arguments)
{
    char text[256];
    (void)context;
    vsnprintf(text, sizeof text, format, arguments);
    log_event(LOG_DEBUG, "serve.http", "", "%s", text);
}

/* Addresses as they came: none of ours has an escape, and an escaped NUL would cut one short. */
static size_t unescape_nothing(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context, (void)connection;
    return strlen(text);
}

static int start(struct serve *serve, int fd, struct err *err)
{
    serve->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, request_handle,
        serve, MHD_OPTION_EXTERNAL_LOGGER, complain, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MOST, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_NOTIFY_COMPLETED, request_done, serve, MHD_OPTION_NOTIFY_CONNECTION,
        connection_changed, serve, MHD_OPTION_UNESCAPE_CALLBACK, unescape_nothing, NULL,
        MHD_OPTION_END);
    if (!serve->daemon) {
        close(fd);
        return err_set(err, ERR_ENVIRONMENT, "cannot start the HTTP server");
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(serve->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info || info->epoll_fd < 0)
        return err_set(err, ERR_ENVIRONMENT, "libmicrohttpd was built without epoll");
    serve->epoll_fd = info->epoll_fd;
    return 0;
}

int serve_new(struct loop *loop, const struct serve_options *options, const struct serve_site *site,
              struct serve **result, struct err *err)
{
    struct serve *serve = MEM_NEW(struct serve);
    int fd = -1;
    serve->site = site;
    snprintf(serve->token, sizeof serve->token, "%s", options->token);
    list_init(&serve->documents);
    list_init(&serve->clients);
    serve->beaten_ms = serve->ticked_ms = clock_now_ms();
    if (serve_listen(serve, options->listen, &fd, err) || start(serve, fd, err) ||
        signal_watch_start(loop, &serve->interrupt, &serve->task, SIGINT, err) ||
        signal_watch_start(loop, &serve->terminate, &serve->task, SIGTERM, err)) {
        serve_free(serve);
        return -1;
    }
    task_start(loop, &serve->task, &serve_type, NULL, "serve");
    *result = serve;
    return 0;
}

void serve_free(struct serve *serve)
{
    if (!serve)
        return;
    if (serve->daemon)
        MHD_stop_daemon(serve->daemon);
    signal_watch_stop(&serve->interrupt);
    signal_watch_stop(&serve->terminate);
    documents_free(serve);
    mem_free(serve);
}

const char *serve_url(const struct serve *serve)
{
    return serve->url;
}

void serve_make_token(char token[SERVE_TOKEN + 1])
{
    snprintf(token, SERVE_TOKEN + 1, "%016" PRIx64 "%016" PRIx64, random_seed(), random_seed());
}
