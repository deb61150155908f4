/* loop/http against tests/fakes/fake_provider. */
#include "fetch.h"
#include "server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

static const char *const json_type[] = {"Content-Type: application/json",
                                        "Authorization: Bearer hush-hush", NULL};

static struct fetch chat(const struct server *server, const char *body)
{
    static char urls[8][256]; /* http_spec borrows; a test has few at once */
    static int next;
    char *url = urls[next++ % 8];
    snprintf(url, sizeof urls[0], "%s/v1/chat/completions?key=hush-hush", server->url);
    *strchr(url, '?') = '\0';
    return (struct fetch){.spec = {.method = "POST",
                                   .url = url,
                                   .headers = json_type,
                                   .body = body,
                                   .body_length = strlen(body)}};
}

static int count_of(const struct server *server, const char *name)
{
    char url[256], key[64];
    snprintf(url, sizeof url, "%s/_counts", server->url);
    struct fetch fetch = {.spec = {.method = "GET", .url = url}};
    fetch_all(&fetch, 1);
    assert_int_equal(http_status(fetch.request), 200);
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *found = strstr(fetch.text, key);
    assert_non_null(found);
    int count = atoi(found + strlen(key));
    fetch_free(&fetch);
    return count;
}

static void test_whole_answers(void **state)
{
    (void)state;
    struct server server = PROVIDER("--size", "5000", "--key", "hush-hush");
    struct fetch fetch = chat(&server, CHAT);
    fetch_all(&fetch, 1);
    assert_int_equal(http_error(fetch.request)->code, ERR_NONE);
    assert_int_equal(http_status(fetch.request), 200);
    assert_string_equal(http_header(fetch.request, "content-TYPE"), "application/json");
    assert_string_equal(http_header(fetch.request, "no-such"), "");
    assert_string_equal(http_header(fetch.request, "content"), "");
    assert_non_null(strstr(fetch.text, "\"finish_reason\":\"stop\""));
    fetch_free(&fetch);

    fetch = chat(&server, CHAT_STREAM);
    fetch_all(&fetch, 1);
    assert_int_equal(http_error(fetch.request)->code, ERR_NONE);
    assert_string_equal(http_header(fetch.request, "Content-Type"), "text/event-stream");
    assert_non_null(strstr(fetch.text, "data: [DONE]\n\n"));
    fetch_free(&fetch);

    fetch = chat(&server, CHAT); /* nothing consumed: all of it is still there */
    fetch.keep = true;
    fetch_all(&fetch, 1);
    size_t length;
    const char *body = http_body(fetch.request, &length);
    assert_int_equal(atol(http_header(fetch.request, "content-length")), (long)length);
    assert_int_equal(body[length - 1], '}');
    http_consume(fetch.request, 100);
    assert_ptr_equal(http_body(fetch.request, NULL), body + 100);
    fetch_free(&fetch);

    struct fetch stranger = chat(&server, CHAT);
    stranger.spec.headers = NULL;
    fetch_all(&stranger, 1);
    assert_int_equal(http_status(stranger.request), 401);
    assert_int_equal(http_error(stranger.request)->code, ERR_NONE);
    fetch_free(&stranger);
    server_stop(&server);
}

static void test_methods(void **state)
{
    (void)state;
    struct server server = PROVIDER("--size", "10");
    char url[256];
    snprintf(url, sizeof url, "%s/v1/models", server.url);
    static const struct {
        const char *method, *body;
        int status;
        bool has_body;
    } cases[] = {
        {"GET", NULL, 200, true},     {"HEAD", NULL, 404, false}, {"DELETE", NULL, 404, true},
        {"PUT", "{}", 404, true},     {"POST", "", 404, true},    {"POST", NULL, 404, true},
        {"OPTIONS", NULL, 404, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fetch fetch = {
            .spec = {.method = cases[i].method,
                     .url = url,
                     .body = cases[i].body,
                     .total_ms = 20000,
                     .body_length = cases[i].body != NULL ? strlen(cases[i].body) : 0}};
        fetch_all(&fetch, 1);
        assert_int_equal(http_error(fetch.request)->code, ERR_NONE);
        assert_int_equal(http_status(fetch.request), cases[i].status);
        assert_int_equal(fetch.length > 0, cases[i].has_body);
        fetch_free(&fetch);
    }
    server_stop(&server);
}

static const struct {
    const char *fault, *body;
    struct http_spec limits;
    enum err_code code;
    int status;
    const char *words;  /* in the error */
    const char *header; /* "name" and its value */
    const char *value;
    const char *text; /* in the body */
} faults[] = {
    {"status code=429 text=7", CHAT, {0}, ERR_NONE, 429, "", "retry-after", "7", "scripted"},
    {"status code=503", CHAT, {0}, ERR_NONE, 503, "", "retry-after", "", "scripted"},
    {"status code=302 text=http://localhost:1/",
     CHAT,
     {0},
     ERR_NONE,
     302,
     "",
     "location",
     "http://localhost:1/",
     "scripted"},
    {"html", CHAT, {0}, ERR_NONE, 200, "", "content-type", "text/html", "hotel"},
    {"hints", CHAT, {0}, ERR_NONE, 200, "", "retry-after", "", "abcdef"},
    {"truncate", CHAT, {0}, ERR_NONE, 200, "", "", "", "\"ro"},
    {"drip", CHAT, {0}, ERR_NONE, 200, "", "", "", "abcdef"},
    {"drip", CHAT_STREAM, {0}, ERR_NONE, 200, "", "", "", "[DONE]"},
    {"reset after=0", CHAT, {0}, ERR_NETWORK, 0, "reset", "", "", NULL},
    {"reset after=300", CHAT_STREAM, {0}, ERR_NETWORK, 200, "reset", "", "", "data: {"},
    {"close after=0", CHAT, {0}, ERR_NETWORK, 0, "mpty reply", "", "", NULL},
    {"close after=40", CHAT, {0}, ERR_NETWORK, 200, "", "", "", NULL},
    {"close after=300", CHAT_STREAM, {0}, ERR_NETWORK, 200, "", "", "", "data: {"},
    {"stall after=0",
     CHAT,
     {.first_byte_ms = 50},
     ERR_TIMEOUT,
     0,
     "first-byte limit of 0.1 s",
     "",
     "",
     NULL},
    {"bomb after=200000000",
     CHAT,
     {.body_max = 1 << 20},
     ERR_LIMIT,
     200,
     "1048576 bytes",
     "",
     "",
     "aaaa"},
    {"length", CHAT, {.body_max = 100}, ERR_LIMIT, 200, "longer than 100 bytes", "", "", NULL},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct server server = PROVIDER("--fault", faults[i].fault);
        struct fetch fetch = chat(&server, faults[i].body);
        struct http_spec limits = faults[i].limits;
        fetch.spec.first_byte_ms = limits.first_byte_ms;
        fetch.spec.between_bytes_ms = limits.between_bytes_ms;
        fetch.spec.total_ms = limits.total_ms > 0 ? limits.total_ms : 20000;
        fetch.spec.body_max = limits.body_max;
        fetch_all(&fetch, 1);
        const struct err *err = http_error(fetch.request);
        if (err->code != faults[i].code || strstr(err->message, faults[i].words) == NULL)
            fail_msg("%s: %s: %s", faults[i].fault, err_code_name(err->code), err->message);
        assert_int_equal(http_status(fetch.request), faults[i].status);
        assert_string_equal(http_header(fetch.request, faults[i].header), faults[i].value);
        assert_null(strstr(err->message, "hush-hush"));
        assert_false(http_error_is_tls(fetch.request));
        if (faults[i].text != NULL)
            assert_non_null(strstr(fetch.text, faults[i].text));
        assert_true(fetch.length <= (limits.body_max > 0 ? limits.body_max : 16 << 20));
        fetch_free(&fetch);
        server_stop(&server);
    }
}

static void test_a_reset_behind_bytes_not_yet_read(void **state)
{
    (void)state;
    /* More than one read's worth is in the socket when its error comes. */
    struct server server = PROVIDER("--size", "500000", "--fault", "reset after=400000 times=8");
    for (int i = 0; i < 8; i++) {
        struct fetch fetch = chat(&server, CHAT);
        fetch.spec.total_ms = 20000;
        fetch_all(&fetch, 1);
        assert_int_equal(http_error(fetch.request)->code, ERR_NETWORK);
        assert_true(fetch.length > 0);
        fetch_free(&fetch);
    }
    server_stop(&server);
}

static void test_bad_requests(void **state)
{
    (void)state;
    static const char *const split[] = {"A: b\r\nAuthorization: stolen", NULL};
    static const char *const nameless[] = {": value", NULL};
    static const char *const no_colon[] = {"Authorization", NULL};
    static const char *const spaced[] = {"A b: c", NULL};
    static const struct {
        const char *method, *url, *body;
        const char *const *headers;
    } cases[] = {
        {"GET", "ftp://localhost/x", NULL, NULL},
        {"GET", "file:///etc/passwd", NULL, NULL},
        {"GET", "gopher://localhost/x", NULL, NULL},
        {"GET", "/etc/passwd", NULL, NULL},
        {"GET", "", NULL, NULL},
        {"GET", NULL, NULL, NULL},
        {"GET", "http://", NULL, NULL},
        {"GET", "http://a b/", NULL, NULL},
        {"GET", "http://localhost:99999/", NULL, NULL},
        {"", "http://localhost/", NULL, NULL},
        {NULL, "http://localhost/", NULL, NULL},
        {"GET /x HTTP/1.1\r\nA: b", "http://localhost/", NULL, NULL},
        {"GET", "http://localhost/", "body", NULL},
        {"GET", "http://localhost/", NULL, split},
        {"GET", "http://localhost/", NULL, nameless},
        {"GET", "http://localhost/", NULL, no_colon},
        {"GET", "http://localhost/", NULL, spaced},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fetch fetch = {.spec = {.method = cases[i].method,
                                       .url = cases[i].url,
                                       .body = cases[i].body,
                                       .headers = cases[i].headers}};
        fetch_all(&fetch, 1);
        assert_null(fetch.request);
        assert_int_equal(fetch.start_err.code, ERR_USAGE);
        assert_null(strstr(fetch.start_err.message, "stolen"));
    }
}

/* A socket that listens; with its queue full, the kernel lets further connects hang. */
static int listener(int *port, bool full, int fill[4])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    if (!full)
        return fd;
    assert_int_equal(listen(fd, 0), 0);
    for (int i = 0; i < 4; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fill[i], (struct sockaddr *)&address, sizeof address);
    }
    usleep(20000);
    return fd;
}

static void test_no_connection(void **state)
{
    (void)state;
    char url[128];
    int port, fill[4];
    int fd = listener(&port, true, fill);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    struct fetch fetch = {.spec = {.method = "GET", .url = url, .connect_ms = 100}};
    fetch_all(&fetch, 1);
    assert_int_equal(http_error(fetch.request)->code, ERR_TIMEOUT);
    assert_non_null(strstr(http_error(fetch.request)->message, "connect limit of 0.1 s"));
    fetch_free(&fetch);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(fd);

    fd = listener(&port, false, fill); /* bound, but nobody listens: refused */
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    fetch = (struct fetch){.spec = {.method = "GET", .url = url}};
    fetch_all(&fetch, 1);
    assert_int_equal(http_error(fetch.request)->code, ERR_NETWORK);
    assert_non_null(strstr(http_error(fetch.request)->message, "GET 127.0.0.1: "));
    assert_int_equal(http_status(fetch.request), 0);
    fetch_free(&fetch);
    close(fd);

    /* A name that nobody has; with no resolver in reach the limit ends it, and the loop with it. */
    fetch = (struct fetch){
        .spec = {.method = "GET", .url = "http://nobody.invalid/", .connect_ms = 300}};
    fetch_all(&fetch, 1);
    enum err_code code = http_error(fetch.request)->code;
    assert_true(code == ERR_NETWORK || code == ERR_TIMEOUT);
    fetch_free(&fetch);
}

static void test_free_under_way(void **state)
{
    (void)state;
    struct server server = PROVIDER("--size", "100000", "--rate", "200000");
    struct fetch fetch = chat(&server, CHAT_STREAM);
    fetch.free_from = 1;
    fetch_all(&fetch, 1);
    assert_null(fetch.request);
    fetch_free(&fetch);
    server_stop(&server);
}

static void test_connections_are_kept(void **state)
{
    (void)state;
    struct server server = PROVIDER("--size", "10");
    struct loop *loop = loop_new();
    struct err err;
    struct http *http = http_new(loop, &err);
    for (int i = 0; i < 50; i++) {
        struct fetch fetch = chat(&server, i % 2 == 0 ? CHAT : CHAT_STREAM);
        fetch.http = http;
        probe_start(loop, &fetch.probe, NULL, "fetch", fetch_step, NULL);
        loop_run(loop);
        assert_int_equal(http_error(fetch.request)->code, ERR_NONE);
        fetch_free(&fetch);
    }
    http_free(http);
    loop_free(loop);
    assert_int_equal(count_of(&server, "connections"), 2); /* and the counting one */
    assert_int_equal(count_of(&server, "chat"), 50);
    server_stop(&server);
}

static void test_a_crowd(void **state)
{
    (void)state;
    enum { CROWD = 300 };
    /* Each in its own way, and whole: faults hit one request each, in no known order. */
    struct server server = PROVIDER(
        "--size", "1000", "--piece", "500", "--fault", "ok times=100", "--fault", "drip times=20",
        "--fault", "reset after=500 times=30", "--fault", "status code=429 times=50");
    static struct fetch fetches[CROWD];
    for (int i = 0; i < CROWD; i++) {
        fetches[i] = chat(&server, CHAT_STREAM);
        fetches[i].spec.url = fetches[0].spec.url;
    }
    int before = open_descriptors();
    fetch_all(fetches, CROWD);
    assert_int_equal(open_descriptors(), before);
    int good = 0, reset = 0, limited = 0;
    for (int i = 0; i < CROWD; i++) {
        const struct err *err = http_error(fetches[i].request);
        if (http_status(fetches[i].request) == 429)
            limited++;
        else if (err->code == ERR_NETWORK)
            reset++;
        else if (strstr(fetches[i].text, "[DONE]") != NULL)
            good++;
        fetch_free(&fetches[i]);
    }
    assert_int_equal(limited, 50);
    assert_int_equal(reset, 30);
    assert_int_equal(good, CROWD - 80);
    assert_int_equal(count_of(&server, "chat"), CROWD);
    server_stop(&server);
}

static void free_with_running(void)
{
    struct loop *loop = loop_new();
    struct err err;
    struct http *http = http_new(loop, &err);
    struct probe probe = {.body = NULL};
    task_start(loop, &probe.task, &probe_type, NULL, "x");
    struct http_spec spec = {.method = "GET", .url = "http://127.0.0.1:1/"};
    if (http_start(http, &probe.task, &spec, &err) != NULL)
        http_free(http);
}

static void test_free_with_running_dies(void **state)
{
    (void)state;
    assert_non_null(strstr(dying_words(free_with_running), "1 requests run"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_answers),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_a_reset_behind_bytes_not_yet_read),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_no_connection),
        cmocka_unit_test(test_free_under_way),
        cmocka_unit_test(test_connections_are_kept),
        cmocka_unit_test(test_a_crowd),
        cmocka_unit_test(test_free_with_running_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
