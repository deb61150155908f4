/* loop/http: libcurl's multi interface on the loop.
 *
 * libcurl says which sockets to poll and when its next timer is due; we tell it what happened with
 * curl_multi_socket_action(). Whatever that finished is reaped right after, always: reaping only
 * while transfers run would miss the last one's time-out. A socket's number may come back as soon
 * as libcurl has closed it, so POLL_REMOVE takes it out of the poll set in place.
 *
 *            LIGHT_READS small reads in a row
 *   polled ----------------------------------> paced: not polled, read every PACE_MS
 *      ^                                         |
 *      +-----------------------------------------+
 *        a look that found nothing, or no end
 *
 * A model's words come one by one, each a packet of its own, and nobody waits for any but the first
 * and the last: to be woken for every word costs more than all the rest of a completion does. */
#include "base/clock.h"
#include "base/mem.h"
#include "loop/http_private.h"
#include "loop/private.h"

#include <malloc.h>

enum {
    PACE_MS = 100,                     /* the most that an answer's end may be late by */
    LIGHT_READS = 8,                   /* so that a short answer is never late */
    LIGHT_BYTES = HTTP_READ_BYTES / 2, /* of a body; a read that got more may have left some */
    READS_A_LOOK = 64
};

struct http_socket {
    uv_poll_t poll;
    struct http *http;
    curl_socket_t fd;
    struct http_connection *connection; /* NULL: none of libcurl's own (a name server's) */
    int events;                         /* that libcurl wants; 0 once closed */
    unsigned light;                     /* small reads in a row */
    struct link link;
    struct link paced_link;
};

static void check(CURLMcode code)
{
    if (code != CURLM_OK)
        loop_die("libcurl: %s", curl_multi_strerror(code));
}

static void reap(struct http *http)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result; /* the message goes with its handle */
        struct http_request *request = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request);
        http_transfer_done(request, code);
    }
}

static void act(struct http *http, curl_socket_t fd, int flags)
{
    int running;
    check(curl_multi_socket_action(http->multi, fd, flags, &running));
    reap(http);
    http_origins_release(http);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void on_pace(uv_timer_t *timer)
{
    http_multi_look(timer->data);
}

static void pace(struct http_socket *socket)
{
    struct http *http = socket->http;
    uv_poll_stop(&socket->poll);
    list_append(&http->paced, &socket->paced_link);
    if (!uv_is_active((uv_handle_t *)&http->pace)) {
        uv_update_time(&http->loop->uv);
        uv_timer_start(&http->pace, on_pace, PACE_MS, 0);
    }
}

/* Returns how many bytes of bodies came of it. */
static uint64_t take(struct http_socket *socket, int flags)
{
    struct http *http = socket->http;
    uint64_t before = http->received;
    act(http, socket->fd, flags);
    if (http->received > before && socket->events != 0 && socket->connection != NULL)
        socket->connection->heard_ns = clock_now_ns();
    return http->received - before;
}

/* libcurl may have closed the socket in between (its memory stays until the turn is over), or have
 * asked for something else of it. */
static bool is_reading(const struct http_socket *socket)
{
    return socket->events == UV_READABLE && !uv_is_active((const uv_handle_t *)&socket->poll);
}

/* What a small read is. With HTTP/2 a look at a connection is one at each of its requests, which
 * libcurl pays for one by one. */
static uint64_t light_bytes(const struct http *http)
{
    return LIGHT_BYTES * (1 + http->running / (http->socket_count + 1));
}

static void look_at(struct http_socket *socket)
{
    uint64_t got, sum = 0, light = light_bytes(socket->http);
    int reads = 0;
    do
        sum += got = take(socket, CURL_CSELECT_IN);
    while (got >= light && is_reading(socket) && ++reads < READS_A_LOOK);
    if (!is_reading(socket))
        return;
    if (sum > 0 && got < light) {
        pace(socket);
        return;
    }
    socket->light = 0;
    uv_poll_start(&socket->poll, socket->events, on_poll);
}

void http_multi_look(struct http *http)
{
    struct list due; /* apart, since those that stay paced go back into the list */
    list_init(&due);
    for (struct link *link; (link = list_pop(&http->paced)) != NULL;)
        list_append(&due, link);
    for (struct link *link; (link = list_pop(&due)) != NULL;)
        look_at(container_of(link, struct http_socket, paced_link));
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct http_socket *socket = poll->data;
    int flags = 0;
    if (status < 0) /* let libcurl read or write, and so learn which error it is */
        events = socket->events;
    if ((events & UV_READABLE) != 0)
        flags |= CURL_CSELECT_IN;
    if ((events & UV_WRITABLE) != 0)
        flags |= CURL_CSELECT_OUT;
    uint64_t got = take(socket, flags);
    if (got > 0)
        socket->light = got < light_bytes(socket->http) ? socket->light + 1 : 0;
    /* libuv stops a poll that reported an error, while bytes may be left to read before it. */
    if (status < 0 && socket->events != 0)
        uv_poll_start(&socket->poll, socket->events, on_poll);
    else if (socket->events == UV_READABLE && socket->light > LIGHT_READS)
        pace(socket);
}

static void on_socket_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

static void close_socket(struct http_socket *socket)
{
    socket->events = 0;
    socket->http->socket_count--;
    list_remove(&socket->link);
    list_remove(&socket->paced_link);
    uv_close((uv_handle_t *)&socket->poll, on_socket_closed);
}

static struct http_socket *open_socket(struct http *http, curl_socket_t fd)
{
    struct http_socket *socket = MEM_NEW(struct http_socket);
    int status = uv_poll_init_socket(&http->loop->uv, &socket->poll, fd);
    if (status != 0)
        loop_die("cannot poll socket %d: %s", (int)fd, uv_strerror(status));
    socket->poll.data = socket;
    socket->http = http;
    socket->fd = fd;
    socket->connection = http_connection_of(http, fd);
    uv_unref((uv_handle_t *)&socket->poll); /* a request's own timer keeps the loop alive */
    list_append(&http->sockets, &socket->link);
    http->socket_count++;
    check(curl_multi_assign(http->multi, fd, socket));
    return socket;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    (void)easy;
    struct http *http = context;
    struct http_socket *socket = socket_context;
    if (what == CURL_POLL_REMOVE) {
        if (socket != NULL)
            close_socket(socket);
        curl_multi_assign(http->multi, fd, NULL);
        return 0;
    }
    if (socket == NULL)
        socket = open_socket(http, fd);
    socket->events = 0;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        socket->events |= UV_READABLE;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        socket->events |= UV_WRITABLE;
    list_remove(&socket->paced_link);
    socket->light = 0;
    uv_poll_start(&socket->poll, socket->events, on_poll);
    return 0;
}

static void on_timer(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer_wanted(CURLM *multi, long timeout_ms, void *context)
{
    (void)multi;
    struct http *http = context;
    if (timeout_ms < 0) {
        uv_timer_stop(&http->timer);
        return 0;
    }
    uv_update_time(&http->loop->uv);
    uv_timer_start(&http->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static CURLcode global_status;

/* The pool's threads take turns with memory, the store's commits above all; an arena for each would
 * keep what each has needed at its most. */
static void init_process(void)
{
    (void)mallopt(M_ARENA_MAX, 1);
    global_status = curl_global_init(CURL_GLOBAL_DEFAULT);
}

struct http *http_new(struct loop *loop, struct err *err)
{
    static uv_once_t once = UV_ONCE_INIT;
    uv_once(&once, init_process);
    CURLM *multi = global_status == CURLE_OK ? curl_multi_init() : NULL;
    if (multi == NULL) {
        err_set(err, ERR_ENVIRONMENT, "libcurl does not start");
        return NULL;
    }
    struct http *http = MEM_NEW(struct http);
    http->loop = loop;
    http->multi = multi;
    list_init(&http->sockets);
    list_init(&http->origins);
    list_init(&http->connections);
    list_init(&http->paced);
    uv_timer_init(&loop->uv, &http->timer);
    uv_timer_init(&loop->uv, &http->pace);
    uv_unref((uv_handle_t *)&http->timer);
    uv_unref((uv_handle_t *)&http->pace);
    http->timer.data = http->pace.data = http;
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, http);
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    return http;
}

static void on_engine_closed(uv_handle_t *handle)
{
    struct http *http = handle->data;
    if (--http->handles == 0)
        mem_free(http);
}

void http_free(struct http *http)
{
    if (http == NULL)
        return;
    if (http->running != 0)
        loop_die("http_free() while %u requests run", http->running);
    curl_multi_cleanup(http->multi); /* closes what was kept alive */
    http_forget_connections(http);
    list_each_safe (link, &http->sockets)
        close_socket(container_of(link, struct http_socket, link));
    http_origins_free(http);
    http->handles = 2;
    uv_close((uv_handle_t *)&http->timer, on_engine_closed);
    uv_close((uv_handle_t *)&http->pace, on_engine_closed);
}

void http_multi_add(struct http *http, struct http_request *request)
{
    check(curl_multi_add_handle(http->multi, request->easy));
}

void http_multi_remove(struct http *http, struct http_request *request)
{
    check(curl_multi_remove_handle(http->multi, request->easy));
}
