/* loop/http over TLS against tests/fakes/fake_tls.py: trust, and HTTP/2 on one connection. */
#include "fetch.h"
#include "server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CA TEST_SOURCE_DIR "/tests/fakes/tls/localhost.pem"

static struct server tls_server(const char *protocol)
{
    return server_start(
        "https", "localhost",
        (const char *const[]){TEST_SOURCE_DIR "/tests/fakes/fake_tls.py", protocol, NULL});
}

static struct fetch get(const char *url, const char *ca_file)
{
    return (struct fetch){
        .spec = {.method = "GET", .url = url, .ca_file = ca_file, .total_ms = 20000}};
}

static void test_trust(void **state)
{
    (void)state;
    struct server server = tls_server("http/1.1");
    struct fetch trusted = get(server.url, CA);
    fetch_all(&trusted, 1);
    assert_string_equal(http_error(trusted.request)->message, "");
    assert_int_equal(http_status(trusted.request), 200);
    assert_string_equal(trusted.text, "connection 1");
    fetch_free(&trusted);

    struct fetch stranger = get(server.url, NULL);
    fetch_all(&stranger, 1);
    assert_int_equal(http_error(stranger.request)->code, ERR_NETWORK);
    assert_true(http_error_is_tls(stranger.request));
    assert_int_equal(http_status(stranger.request), 0);
    fetch_free(&stranger);

    char url[128]; /* the certificate is for another name */
    snprintf(url, sizeof url, "https://127.0.0.1:%d", server.port);
    struct fetch other = get(url, CA);
    fetch_all(&other, 1);
    assert_int_equal(http_error(other.request)->code, ERR_NETWORK);
    assert_true(http_error_is_tls(other.request));
    fetch_free(&other);

    struct fetch lost = get(server.url, "/nonexistent/ca.pem");
    fetch_all(&lost, 1);
    assert_int_equal(http_error(lost.request)->code, ERR_NETWORK);
    assert_true(http_error_is_tls(lost.request));
    fetch_free(&lost);
    server_stop(&server);
}

static void test_a_plain_server_is_no_lack_of_trust(void **state)
{
    (void)state;
    struct server server = PROVIDER("--size", "10");
    char url[128];
    snprintf(url, sizeof url, "https://127.0.0.1:%d", server.port);
    struct fetch fetch = get(url, CA);
    fetch.spec.connect_ms = 500; /* the fake waits for a blank line that does not come */
    fetch_all(&fetch, 1);
    enum err_code code = http_error(fetch.request)->code;
    assert_true(code == ERR_NETWORK || code == ERR_TIMEOUT);
    assert_false(http_error_is_tls(fetch.request));
    fetch_free(&fetch);
    server_stop(&server);
}

/* Takes one connection, reads the client's hello, and resets it. */
static void *reset_one(void *argument)
{
    char hello[64];
    int listener = *(const int *)argument, peer = accept(listener, NULL, NULL);
    const struct linger now = {.l_onoff = 1};
    if (peer < 0 || recv(peer, hello, sizeof hello, 0) <= 0 ||
        setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now) != 0)
        abort();
    close(peer);
    return NULL;
}

/* Another try may well mend it: a night's provider is not given up for one. */
static void test_a_reset_in_the_handshake_is_no_lack_of_trust(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t peer;
    char url[64];
    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(pthread_create(&peer, NULL, reset_one, &listener), 0);
    snprintf(url, sizeof url, "https://127.0.0.1:%d", ntohs(address.sin_port));
    struct fetch fetch = get(url, CA);
    fetch_all(&fetch, 1);
    assert_int_equal(http_error(fetch.request)->code, ERR_NETWORK);
    assert_false(http_error_is_tls(fetch.request));
    fetch_free(&fetch);
    pthread_join(peer, NULL);
    close(listener);
}

static void test_http2_shares_a_connection(void **state)
{
    (void)state;
    enum { STREAMS = 40 };
    struct server server = tls_server("h2");
    static struct fetch fetches[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        fetches[i] = get(server.url, CA);
        if (i % 2 == 1) {
            fetches[i].spec.method = "POST";
            fetches[i].spec.body = "hello";
            fetches[i].spec.body_length = 5;
        }
    }
    fetch_all(fetches, STREAMS);
    for (int i = 0; i < STREAMS; i++) {
        assert_string_equal(http_error(fetches[i].request)->message, "");
        assert_int_equal(http_status(fetches[i].request), 200);
        assert_string_equal(fetches[i].text, "connection 1");
        fetch_free(&fetches[i]);
    }
    server_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trust),
        cmocka_unit_test(test_a_plain_server_is_no_lack_of_trust),
        cmocka_unit_test(test_a_reset_in_the_handshake_is_no_lack_of_trust),
        cmocka_unit_test(test_http2_shares_a_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
