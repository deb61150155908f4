/* fake_provider [OPTION VALUE]...: a small HTTP/1.1 server on 127.0.0.1 that speaks OpenAI's,
 * Anthropic's and Gemini's formats at once, told apart by path and headers; GET /_counts and
 * GET /_answered are for the test. It prints "port N" when it listens, and dies with whoever
 * started it.
 *
 * Sending is driven by a tick of 5 ms; a stream that has a rate gets its bytes at every tenth
 * tick, so that a thousand streams spread over the ticks as a thousand users would. */
#include "fake_provider.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <uv.h>

enum { TICK_MS = 5, SLOTS = 10, DRIPS_A_TICK = 24, REQUEST_MOST = 32 << 20, READ_BYTES = 64 << 10 };

struct connection {
    uv_tcp_t tcp;
    struct connection *previous, *next; /* of those that have something to send */
    struct bytes *in;                   /* what was read and not yet answered */
    struct response out;                /* bytes == NULL: nothing to send */
    size_t sent;         /* of the response's bytes, from repeat_from again after a repeat */
    uint64_t total;      /* with all repeats */
    uint64_t started_ms; /* the response's first byte is due */
    unsigned slot;
    bool sending;
    bool dead; /* the next request is answered by RST */
};

static uv_loop_t *loop;
static uv_timer_t tick;
static struct connection senders = {.previous = &senders, .next = &senders};
static unsigned tick_number, open_count, accepted_count;

/* --- closing --- */

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void stop_sending(struct connection *connection)
{
    if (connection->sending) {
        connection->previous->next = connection->next;
        connection->next->previous = connection->previous;
        connection->sending = false;
    }
    bytes_release(connection->out.bytes);
    connection->out.bytes = NULL;
    if (senders.next == &senders)
        uv_timer_stop(&tick);
}

static void hang_up(struct connection *connection, bool reset)
{
    if (uv_is_closing((uv_handle_t *)&connection->tcp))
        return;
    stop_sending(connection);
    bytes_release(connection->in);
    connection->in = NULL;
    open_count--;
    if (!reset || uv_tcp_close_reset(&connection->tcp, on_closed) != 0)
        uv_close((uv_handle_t *)&connection->tcp, on_closed);
}

/* --- sending --- */

static void answer_requests(struct connection *connection);

static void end_response(struct connection *connection)
{
    enum ending ending = connection->out.ending;
    if (ending == END_STALL)
        return; /* the response stays where it is; its bytes are all sent */
    if (connection->out.tally != NULL)
        tally_answered(connection->out.tally);
    stop_sending(connection);
    connection->dead = ending == END_DEAD;
    if (ending == END_KEEP)
        answer_requests(connection);
    else if (ending == END_DEAD)
        return;
    else
        hang_up(connection, ending == END_RESET);
}

/* Sends what this tick allows; at most the whole rest. */
static void pump(struct connection *connection)
{
    struct response *out = &connection->out;
    if (uv_now(loop) < connection->started_ms)
        return;
    size_t left = out->bytes->length - connection->sent;
    size_t allowed = left;
    if (out->rate > 0) { /* by the clock, so that late ticks do not slow a stream down */
        uint64_t due = (uint64_t)out->rate * (uv_now(loop) - connection->started_ms) / 1000;
        allowed = due > connection->total ? (size_t)(due - connection->total) : 0;
    }
    if (out->rate < 0)
        allowed = 1;
    if (out->rate > 0 && tick_number % SLOTS != connection->slot)
        return;
    if (allowed > left)
        allowed = left;
    if (allowed > 0) {
        uv_buf_t buf = uv_buf_init(out->bytes->data + connection->sent, (unsigned)allowed);
        int sent = uv_try_write((uv_stream_t *)&connection->tcp, &buf, 1);
        if (sent == UV_EAGAIN)
            return;
        if (sent < 0) {
            hang_up(connection, false);
            return;
        }
        connection->sent += (size_t)sent;
        connection->total += (size_t)sent;
    }
    if (connection->sent < out->bytes->length)
        return;
    if (out->repeat_times != 0) {
        out->repeat_times -= out->repeat_times > 0;
        connection->sent = out->repeat_from;
    } else {
        end_response(connection);
    }
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
    tick_number++;
    for (struct connection *connection = senders.next; connection != &senders;) {
        struct connection *next = connection->next;
        int writes = connection->out.rate < 0 ? DRIPS_A_TICK : 1;
        for (int i = 0; i < writes && connection->out.bytes != NULL; i++)
            pump(connection);
        connection = next;
    }
}

static void start_sending(struct connection *connection, struct response response)
{
    connection->out = response;
    connection->sent = 0;
    connection->total = 0;
    connection->started_ms = uv_now(loop) + (uint64_t)response.delay_ms;
    connection->sending = true;
    connection->previous = senders.previous;
    connection->next = &senders;
    senders.previous->next = connection;
    senders.previous = connection;
    if (!uv_is_active((uv_handle_t *)&tick))
        uv_timer_start(&tick, on_tick, TICK_MS, TICK_MS);
    if (response.rate == 0 && response.delay_ms == 0)
        pump(connection);
}

/* --- reading --- */

/* Answers the first whole request of connection->in; false where there is none yet. */
static bool answer_one(struct connection *connection)
{
    struct bytes *in = connection->in;
    char *end = in->length > 0 ? memmem(in->data, in->length, "\r\n\r\n", 4) : NULL;
    if (end == NULL)
        return false;
    if (connection->dead) {
        hang_up(connection, true);
        return false;
    }
    char head[16384], length_text[32];
    size_t head_length = (size_t)(end - in->data) + 4;
    if (head_length >= sizeof head) {
        hang_up(connection, true);
        return false;
    }
    memcpy(head, in->data, head_length);
    head[head_length] = '\0';
    struct request request = {.headers = strstr(head, "\r\n") + 2};
    request_header(&request, "Content-Length", length_text, sizeof length_text);
    size_t body_length = strtoul(length_text, NULL, 10);
    if (in->length - head_length < body_length)
        return false;
    char *rest = NULL;
    request.body = in->data + head_length;
    request.body_length = body_length;
    request.method = strtok_r(head, " ", &rest);
    request.path = strtok_r(NULL, " ", &rest);
    if (request.path == NULL) {
        hang_up(connection, true);
        return false;
    }
    struct response response = route(&request, open_count, accepted_count);
    in->length -= head_length + body_length;
    memmove(in->data, in->data + head_length + body_length, in->length);
    start_sending(connection, response);
    return true;
}

static void answer_requests(struct connection *connection)
{
    while (connection->in != NULL && connection->out.bytes == NULL && answer_one(connection))
        continue;
}

static void on_room_wanted(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char room[READ_BYTES]; /* read and copied at once */
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(room, sizeof room);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct connection *connection = stream->data;
    if (got < 0 || connection->in->length > REQUEST_MOST) {
        hang_up(connection, false);
        return;
    }
    bytes_add(connection->in, buf->base, (size_t)got);
    answer_requests(connection);
}

static void on_connection(uv_stream_t *server, int status)
{
    if (status != 0)
        return;
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        abort();
    uv_tcp_init(loop, &connection->tcp);
    connection->tcp.data = connection;
    connection->in = bytes_new();
    connection->slot = accepted_count % SLOTS;
    open_count++;
    accepted_count++;
    if (uv_accept(server, (uv_stream_t *)&connection->tcp) != 0) {
        hang_up(connection, false);
        return;
    }
    uv_tcp_nodelay(&connection->tcp, 1);
    uv_read_start((uv_stream_t *)&connection->tcp, on_room_wanted, on_read);
}

/* --- start --- */

static const struct setting {
    const char *name, *help;
    size_t offset;
    bool number;
} settings[] = {
#define SETTING(name, help, field, number)                                                         \
    {                                                                                              \
        name, help, offsetof(struct options, field), number                                        \
    }
    SETTING("--answers", "folder with the answers' texts", answers, false),
    SETTING("--size", "bytes of the made-up answer, where there is no folder", size, true),
    SETTING("--piece", "bytes of content in an event", piece, true),
    SETTING("--rate", "bytes a second of each answer; 0: no limit", rate, true),
    SETTING("--script", "file with a line for each request", script, false),
    SETTING("--key", "the key that requests must have, in each format's header", key, false),
    SETTING("--record", "folder for the bodies of the requests", record, false),
    SETTING("--model", "the models' names, with commas between; none: any", model, false),
    SETTING("--by-content", "folder of sources: answers by the request's text", by_content, false),
    SETTING("--latency-ms", "LOW-HIGH to the first byte, by the request's text", latency, false),
    SETTING("--fail-rate", "share of requests that meet a line of the script", fail_rate, false),
    SETTING("--batch-looks", "how often a batch is looked at until it has ended", batch_looks,
            true),
    SETTING("--seed", "of the fail rate's draws", seed, true),
#undef SETTING
};

static void read_options(char **argv, struct options *options)
{
    for (; argv[0] != NULL; argv += 2) {
        const struct setting *found = NULL;
        for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
            if (strcmp(argv[0], settings[i].name) == 0)
                found = &settings[i];
        }
        if (argv[1] != NULL && strcmp(argv[0], "--fault") == 0) {
            script_add(argv[1]);
        } else if (argv[1] != NULL && strcmp(argv[0], "--embedding-fault") == 0) {
            script_add_embedding(argv[1]);
        } else if (argv[1] != NULL && strcmp(argv[0], "--batch") == 0) {
            script_add_batch(argv[1]);
        } else if (found != NULL && argv[1] != NULL) {
            char *field = (char *)options + found->offset;
            if (found->number)
                *(long *)(void *)field = strtol(argv[1], NULL, 10);
            else
                *(const char **)(void *)field = argv[1];
        } else {
            fprintf(stderr, "fake_provider: %s?\n  --fault      a line of the script\n", argv[0]);
            fprintf(stderr, "  --batch      STEP and a line: of a batch's own requests\n");
            fprintf(stderr, "  --embedding-fault  the same, of requests for embeddings\n");
            for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
                fprintf(stderr, "  %-12s %s\n", settings[i].name, settings[i].help);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    struct options options = {.size = 64, .piece = 16, .batch_looks = 2};
    struct rlimit limit;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    read_options(argv + 1, &options);
    answers_init(&options);
    script_init(&options);
    route_init(&options);
    batch_init(&options);

    loop = uv_default_loop();
    uv_tcp_t server;
    struct sockaddr_in address;
    struct sockaddr_storage bound;
    int length = sizeof bound;
    uv_timer_init(loop, &tick);
    uv_tcp_init(loop, &server);
    uv_ip4_addr("127.0.0.1", 0, &address);
    if (uv_tcp_bind(&server, (const struct sockaddr *)&address, 0) != 0 ||
        uv_listen((uv_stream_t *)&server, 4096, on_connection) != 0 ||
        uv_tcp_getsockname(&server, (struct sockaddr *)&bound, &length) != 0) {
        fprintf(stderr, "fake_provider: cannot listen on 127.0.0.1\n");
        return 1;
    }
    printf("port %d\n", ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port));
    fflush(stdout);
    return uv_run(loop, UV_RUN_DEFAULT);
}
