/* loop/http's limits by an injected clock: hours in milliseconds, and nothing asserted on ours. */
#include "fetch.h"
#include "server.h"

#include "base/clock.h"
#include "loop/http_private.h"
#include "loop/work.h"

#include <poll.h>

static uint64_t now_ns = UINT64_C(1000000000000);

static const struct http *sleep_at_next_look; /* at the clock; NULL: no sleep */

/* In which something arrives. Where nothing does, however long, there is nothing to be told of. */
static bool sleep_until_it_comes(const struct http *http)
{
    enum { MOST_MS = 60000 };
    struct pollfd sockets[4];
    nfds_t count = 0;
    list_each (link, &http->connections)
        if (count < 4)
            sockets[count++] = (struct pollfd){
                .fd = container_of(link, struct http_connection, link)->fd, .events = POLLIN};
    return poll(sockets, count, MOST_MS) > 0;
}

static uint64_t fake_now(void *context)
{
    (void)context;
    const struct http *http = sleep_at_next_look;
    sleep_at_next_look = NULL;
    if (http != NULL && sleep_until_it_comes(http))
        now_ns += UINT64_C(7200) * 1000000000;
    return now_ns;
}

struct hour {     /* moves the clock by steps until the fetch is done */
    size_t bytes; /* of body, that it waits for first */
    bool head;    /* that it waits for, too */
    struct probe probe;
    struct fetch *fetch;
    struct work nap;
    uint64_t step_ms;
    uint64_t moved_ms;
};

static void nap(void *argument)
{
    (void)argument;
    usleep(1000); /* of real time, in which the loop looks at its sockets */
}

/* The clock stands still until the fetch is connected and has what its server will send. */
static enum task_result hour_step(struct probe *probe)
{
    struct hour *hour = probe->context;
    const struct fetch *fetch = hour->fetch;
    if (fetch->probe.task.finished)
        return TASK_DONE;
    bool there = !hour->head || *http_header(fetch->request, "transfer-encoding") != '\0';
    if (fetch->request->connected_ns != 0 && fetch->length >= hour->bytes && there) {
        now_ns += hour->step_ms * 1000000;
        hour->moved_ms += hour->step_ms;
    }
    work_start(probe->task.loop, &hour->nap, &probe->task, nap, NULL);
    return TASK_WAIT;
}

static const struct {
    const char *fault;
    size_t bytes; /* of body that come before the silence */
    bool head;    /* comes before it */
    struct http_spec limits;
    uint64_t strikes_ms; /* after the silence began */
    const char *words;
} cases[] = {
    /* A model that thinks for ten minutes survives them, by default, and not more. */
    {"stall after=0", 0, false, {0}, 600000, "first-byte limit of 600.0 s"},
    {"stall after=80", 0, true, {.first_byte_ms = 500}, 500, "first-byte limit of 0.5 s"},
    {"stall after=300", 1, true, {0}, 120000, "between-bytes limit of 120.0 s"},
    {"stall after=300", 1, true, {.between_bytes_ms = 5000}, 5000, "between-bytes limit of 5.0 s"},
    {"stall after=0", 0, false, {.first_byte_ms = 7200000}, 3600000, "total limit of 3600.0 s"},
    {"stall after=300", 1, true, {.total_ms = 9000}, 9000, "total limit of 9.0 s"},
    {"stall after=0",
     0,
     false,
     {.first_byte_ms = UINT64_MAX, .total_ms = 9000},
     9000,
     "total limit of 9.0 s"},
};

static void test_limits_by_the_clock(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct server server = PROVIDER("--fault", cases[i].fault);
        char url[256];
        snprintf(url, sizeof url, "%s/v1/chat/completions", server.url);
        struct fetch fetch = {.spec = cases[i].limits};
        fetch.spec.method = "POST";
        fetch.spec.url = url;
        fetch.spec.body = CHAT_STREAM;
        fetch.spec.body_length = strlen(CHAT_STREAM);

        clock_inject(fake_now, NULL);
        struct loop *loop = loop_new();
        struct err err;
        struct http *http = http_new(loop, &err);
        fetch.http = http;
        struct hour hour = {.fetch = &fetch,
                            .bytes = cases[i].bytes,
                            .head = cases[i].head,
                            .step_ms = cases[i].strikes_ms / 100};
        probe_start(loop, &fetch.probe, NULL, "fetch", fetch_step, NULL);
        probe_start(loop, &hour.probe, NULL, "hour", hour_step, &hour);
        loop_run(loop);
        clock_inject(NULL, NULL);

        assert_int_equal(http_error(fetch.request)->code, ERR_TIMEOUT);
        assert_non_null(strstr(http_error(fetch.request)->message, cases[i].words));
        assert_in_range(hour.moved_ms, cases[i].strikes_ms, cases[i].strikes_ms + 4 * hour.step_ms);
        assert_int_equal(http_status(fetch.request), cases[i].head ? 200 : 0);
        assert_string_equal(http_header(fetch.request, "transfer-encoding"),
                            cases[i].head ? "chunked" : "");
        if (cases[i].bytes > 0)
            assert_non_null(strstr(fetch.text, "data: {"));
        fetch_free(&fetch);
        http_free(http);
        loop_free(loop);
        server_stop(&server);
    }
}

/* Falls asleep once some bytes have come, between the poll and the look at the timers. */
static enum task_result sleeper_step(struct probe *probe)
{
    struct fetch *fetch = probe->context;
    if (fetch->probe.task.finished)
        return TASK_DONE;
    if (fetch->length > 0 && !http_done(fetch->request) && probe->number++ == 0)
        sleep_at_next_look = fetch->http;
    return TASK_AGAIN;
}

static void test_bytes_that_arrived_in_our_sleep_count(void **state)
{
    (void)state;
    struct server server = PROVIDER("--size", "4000", "--rate", "50000");
    char url[256];
    snprintf(url, sizeof url, "%s/v1/chat/completions", server.url);
    struct fetch fetch = {.spec = {.method = "POST",
                                   .url = url,
                                   .body = CHAT_STREAM,
                                   .body_length = strlen(CHAT_STREAM),
                                   .between_bytes_ms = 60000,
                                   .total_ms = UINT64_MAX}};
    clock_inject(fake_now, NULL);
    struct loop *loop = loop_new();
    struct err err;
    fetch.http = http_new(loop, &err);
    struct probe sleeper;
    probe_start(loop, &fetch.probe, NULL, "fetch", fetch_step, NULL);
    probe_start(loop, &sleeper, NULL, "sleeper", sleeper_step, &fetch);
    loop_run(loop);
    clock_inject(NULL, NULL);
    assert_int_equal(http_error(fetch.request)->code, ERR_NONE);
    assert_non_null(strstr(fetch.text, "[DONE]"));
    struct http *http = fetch.http;
    fetch_free(&fetch);
    http_free(http);
    loop_free(loop);
    server_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_by_the_clock),
        cmocka_unit_test(test_bytes_that_arrived_in_our_sleep_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
