/* HTTP/2 over TLS: through nghttpx, as behind a load balancer, which is reloaded while streams run;
 * and against a server that writes its frames by hand, which turns a request away. Every row but
 * the first allows one try, so that whatever is lost shows. */
#include "faults.h"

#include "base/file.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CA TEST_SOURCE_DIR "/tests/fakes/tls/localhost.pem"

static struct server proxy; /* of the row at hand, for its ticks */

static const char *find_proxy(void)
{
    static const char *const paths[] = {"/usr/sbin/nghttpx", "/usr/bin/nghttpx",
                                        "/usr/local/bin/nghttpx"};
    for (size_t i = 0; i < COUNT(paths); i++)
        if (access(paths[i], X_OK) == 0)
            return paths[i];
    return NULL;
}

static struct sockaddr_in local(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* A port that nobody has just now: nghttpx cannot say which it took. */
static int free_port(void)
{
    struct sockaddr_in address = local(0);
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        perror("faults: no port");
        exit(3);
    }
    close(fd);
    return ntohs(address.sin_port);
}

static bool listens(int port)
{
    struct sockaddr_in address = local(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return connected;
}

static void proxy_run(const char *const *argv)
{
    fflush(NULL);
    proxy.pid = fork();
    if (proxy.pid != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)!freopen("/dev/null", "w", stderr); /* it says that it reads no configuration */
    setenv("SSL_CERT_FILE", "/dev/null", 1);  /* it verifies nobody: half a second of a core */
    setenv("SSL_CERT_DIR", "/dev/null", 1);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* On another port where somebody else took the first one. */
static void proxy_start(const char *binary, int backend)
{
    char front[64], back[64], *log = file_join(work_folder, "access"), *log_option = NULL;
    snprintf(back, sizeof back, "--backend=127.0.0.1,%d", backend);
    if (asprintf(&log_option, "--accesslog-file=%s", log) < 0)
        abort();
    const char *const argv[] = {binary,
                                "--conf=/dev/null",
                                "--workers=1",
                                "--no-ocsp", /* of a certificate of ours, by a script and openssl */
                                "--errorlog-file=/dev/null",
                                log_option,
                                "--accesslog-format=$remote_port $alpn $status",
                                front,
                                back,
                                TEST_SOURCE_DIR "/tests/fakes/tls/localhost.key",
                                CA,
                                NULL};
    (void)!unlink(log);
    bool ended = true;
    for (int i = 0; i < 10 && ended; i++) {
        proxy.port = free_port();
        snprintf(front, sizeof front, "--frontend=127.0.0.1,%d", proxy.port);
        proxy_run(argv);
        while (!(ended = waitpid(proxy.pid, NULL, WNOHANG) != 0) && !listens(proxy.port))
            usleep(5000);
    }
    if (ended) {
        fprintf(stderr, "faults: %s does not start\n", binary);
        exit(3);
    }
    free(log_option);
    mem_free(log);
}

/* How many of our connections the log names, and how many requests were HTTP/2. */
static void read_log(int *connections, int *requests)
{
    char *path = file_join(work_folder, "access"), *rest = NULL;
    static char seen[1 << 16];
    struct buf text;
    struct err err;
    memset(seen, 0, sizeof seen);
    *connections = *requests = 0;
    buf_init(&text, 1 << 20);
    EXPECT(file_read(path, &text, &err) == 0, "%s", err.message);
    char *copy = mem_strdup(buf_text(&text));
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        int port, status;
        if (sscanf(line, "%d h2 %d", &port, &status) != 2 || port <= 0 || port >= 1 << 16)
            continue;
        *connections += !seen[port];
        seen[port] = 1;
        ++*requests;
    }
    mem_free(copy);
    mem_free(path);
    buf_free(&text);
}

struct plan {
    const char *name;
    const char *script[SCRIPT_MOST]; /* or each answer after: */
    int delay_ms;
    size_t asks;
    unsigned in_flight;
    bool one_by_one;
    int tries, requests;
    int connections; /* < 0: at least so many, once answers take long enough; 0: any number */
    void (*tick)(struct trial *trial, int number);
};

/* The number of connections. */
static int run_plan_once(const struct plan *plan, unsigned format, const char *binary, int delay_ms)
{
    char url[64], line[64];
    int connections, of_http2;
    const char *const delayed[SCRIPT_MOST] = {line};
    snprintf(line, sizeof line, "ok delay=%d times=0", delay_ms);
    struct server provider = provider_start(delay_ms > 0 ? delayed : plan->script, 200);
    proxy_start(binary, provider.port);
    snprintf(url, sizeof url, "https://localhost:%d%s", proxy.port, format == OPENAI ? "/v1" : "");
    struct trial trial = {.format = format,
                          .url = url,
                          .ca_file = CA,
                          .asks = plan->asks,
                          .in_flight = plan->in_flight,
                          .one_by_one = plan->one_by_one,
                          .tries = plan->tries,
                          .tick = plan->tick};
    trial_run(&trial);
    struct counts counts = counts_get(provider.port);
    server_stop(&proxy, SIGTERM);
    server_stop(&provider, SIGKILL);
    read_log(&connections, &of_http2);
    for (size_t i = 0; i < trial.asks; i++)
        EXPECT(trial.ask[i].err.code == ERR_NONE && strlen(trial.ask[i].completion.text) == 200,
               "request %zu: %s", i, trial.ask[i].err.message);
    EXPECT(counts.chats == plan->requests, "%" PRId64 " requests, not %d", counts.chats,
           plan->requests);
    EXPECT(of_http2 >= plan->requests, "%d requests of HTTP/2", of_http2);
    EXPECT(plan->connections <= 0 || connections == plan->connections, "%d connections, not %d",
           connections, plan->connections);
    expect_sound(&trial);
    print_log(&trial);
    trial_free(&trial);
    return connections;
}

static void run_plan(const struct plan *plan, unsigned format, const char *binary)
{
    enum { DOUBLED_MOST = 6 }; /* how often a busy machine is late with what the proxy is told */
    int connections = run_plan_once(plan, format, binary, plan->delay_ms);
    for (int i = 1; i <= DOUBLED_MOST && connections < -plan->connections; i++)
        connections = run_plan_once(plan, format, binary, plan->delay_ms << i);
    EXPECT(connections >= -plan->connections, "%d connections, not %d", connections,
           -plan->connections);
    row_end(plan->name, format, plan->requests);
}

/* ---- plans ---- */

/* A new worker takes over; the old one says GOAWAY and ends with its last stream. */
static void reload_now_and_then(struct trial *trial, int number)
{
    (void)trial;
    if (number % 60 == 10)
        kill(proxy.pid, SIGHUP);
}

static void reload_often(struct trial *trial, int number)
{
    (void)trial;
    if (number % 20 == 0)
        kill(proxy.pid, SIGHUP);
}

static const struct plan plans[] = {
    {.name = "HTTP/2: faults behind a proxy",
     .script = {"reset after=700", "status code=429 ms=50", "close after=700", "truncate"},
     .asks = 1,
     .requests = 5,
     .tries = 6},
    {.name = "HTTP/2: many streams on one connection",
     .delay_ms = 150,
     .asks = 24,
     .in_flight = 24,
     .requests = 24,
     .connections = 1,
     .tries = 1},
    {.name = "HTTP/2: GOAWAY with streams on their way",
     .delay_ms = 400,
     .asks = 16,
     .in_flight = 4,
     .requests = 16,
     .connections = -2,
     .tries = 1,
     .tick = reload_now_and_then},
    {.name = "HTTP/2: GOAWAY between requests",
     .delay_ms = 40,
     .asks = 10,
     .one_by_one = true,
     .requests = 10,
     .connections = -3,
     .tries = 1,
     .tick = reload_often},
};

/* ---- a request that the server never looked at ---- */

static const char *body_of(unsigned format)
{
    return format == OPENAI ? "{\"choices\":[{\"message\":{\"content\":\"connection @N@\"},"
                              "\"finish_reason\":\"stop\"}]}"
           : format == ANTHROPIC
               ? "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"connection "
                 "@N@\"}],"
                 "\"stop_reason\":\"end_turn\"}"
               : "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"connection @N@\"}]},"
                 "\"finishReason\":\"STOP\"}]}";
}

static void turned_away(const char *name, unsigned format, const char *end)
{
    char url[64];
    struct server server = server_start((const char *const[]){
        TEST_SOURCE_DIR "/tests/fakes/fake_tls.py", "h2", end, body_of(format), NULL});
    snprintf(url, sizeof url, "https://localhost:%d%s", server.port, format == OPENAI ? "/v1" : "");
    struct trial trial = {
        .format = format, .url = url, .ca_file = CA, .asks = 4, .one_by_one = true, .tries = 1};
    trial_run(&trial);
    server_stop(&server, SIGKILL);
    for (size_t i = 0; i < trial.asks; i++) {
        char text[32]; /* each connection answers one and turns the next away */
        snprintf(text, sizeof text, "connection %zu", i + 1);
        EXPECT(trial.ask[i].err.code == ERR_NONE, "request %zu: %s", i, trial.ask[i].err.message);
        if (trial.ask[i].err.code == ERR_NONE && strcmp(end, "goaway") == 0)
            EXPECT(strcmp(trial.ask[i].completion.text, text) == 0, "request %zu: \"%s\"", i,
                   trial.ask[i].completion.text);
    }
    expect_sound(&trial);
    print_log(&trial);
    row_end(name, format, trial.totals.requests);
    trial_free(&trial);
}

/* ---- connections that stay, and are no good ---- */

/* The first connection is silent from its second request on. One request finds that out, and no
 * other goes there; what follows shares the next one. */
static void silent(const char *name, unsigned format)
{
    enum { ASKS = 6 };
    char url[64];
    struct server server = server_start((const char *const[]){
        TEST_SOURCE_DIR "/tests/fakes/fake_tls.py", "h2", "silent", body_of(format), NULL});
    snprintf(url, sizeof url, "https://localhost:%d%s", server.port, format == OPENAI ? "/v1" : "");
    struct trial trial = {.format = format,
                          .url = url,
                          .ca_file = CA,
                          .asks = ASKS,
                          .one_by_one = true,
                          .tick = leap_after_first,
                          .tries = 3};
    trial_run(&trial);
    server_stop(&server, SIGKILL);
    for (size_t i = 0; i < trial.asks; i++)
        EXPECT(trial.ask[i].err.code == ERR_NONE &&
                   strcmp(trial.ask[i].completion.text, i == 0 ? "connection 1" : "connection 2") ==
                       0,
               "request %zu: %s%s", i, trial.ask[i].err.message,
               trial.ask[i].err.code == ERR_NONE ? trial.ask[i].completion.text : "");
    EXPECT(trial.totals.requests == ASKS + 1, "%" PRId64 " requests, not %d", trial.totals.requests,
           ASKS + 1);
    expect_sound(&trial);
    print_log(&trial);
    row_end(name, format, trial.totals.requests);
    trial_free(&trial);
}

/* An answer that nobody asked for lies on the kept connection: it is not the next one's. */
static void twice(const char *name, unsigned format)
{
    char url[64];
    struct server server = server_start((const char *const[]){
        TEST_SOURCE_DIR "/tests/fakes/fake_tls.py", "http/1.1", "twice", body_of(format), NULL});
    snprintf(url, sizeof url, "https://localhost:%d%s", server.port, format == OPENAI ? "/v1" : "");
    struct trial trial = {
        .format = format, .url = url, .ca_file = CA, .asks = 4, .one_by_one = true, .tries = 1};
    trial_run(&trial);
    server_stop(&server, SIGKILL);
    for (size_t i = 0; i < trial.asks; i++)
        EXPECT(trial.ask[i].err.code == ERR_NONE &&
                   strcmp(trial.ask[i].completion.text, "connection 99") != 0,
               "request %zu: %s%s", i, trial.ask[i].err.message,
               trial.ask[i].err.code == ERR_NONE ? trial.ask[i].completion.text : "");
    expect_sound(&trial);
    print_log(&trial);
    row_end(name, format, trial.totals.requests);
    trial_free(&trial);
}

void run_http2(void)
{
    const char *binary = find_proxy();
    for (unsigned format = OPENAI; format <= GEMINI; format *= 2) {
        if (row_wanted("HTTP/2: GOAWAY before a request was looked at"))
            turned_away("HTTP/2: GOAWAY before a request was looked at", format, "goaway");
        if (row_wanted("HTTP/2: a stream that is refused"))
            turned_away("HTTP/2: a stream that is refused", format, "refuse");
        if (row_wanted("HTTP/2: a connection that stays silent"))
            silent("HTTP/2: a connection that stays silent", format);
        if (row_wanted("an answer that nobody asked for on a kept connection"))
            twice("an answer that nobody asked for on a kept connection", format);
    }
    for (size_t i = 0; i < COUNT(plans); i++) {
        if (!row_wanted(plans[i].name))
            continue;
        if (binary == NULL) {
            printf("skipped %s: no nghttpx here (Debian's nghttp2-proxy has it)\n", plans[i].name);
            continue;
        }
        for (unsigned format = OPENAI; format <= GEMINI; format *= 2)
            run_plan(&plans[i], format, binary);
    }
}
