/* Rows of the fault table that need more than a script: two servers, none at all, a clock, several
 * requests that share a key, a second run. */
#include "faults.h"

#include "agents/ideas/extract.h"
#include "base/file.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void expect_answers(const struct trial *trial)
{
    for (size_t i = 0; i < trial->asks; i++)
        EXPECT(trial->ask[i].err.code == ERR_NONE, "request %zu: %s", i, trial->ask[i].err.message);
    expect_sound(trial);
}

static void expect_fault(const struct trial *trial, enum fault fault, int requests, bool blocked)
{
    for (size_t i = 0; i < trial->asks; i++)
        EXPECT(trial->ask[i].err.code != ERR_NONE && trial->ask[i].fault == fault,
               "request %zu: fault %d, not %d: %s", i, (int)trial->ask[i].fault, (int)fault,
               trial->ask[i].err.message);
    EXPECT(trial->totals.requests == requests, "%" PRId64 " requests sent, not %d",
           trial->totals.requests, requests);
    EXPECT((trial->blocked.code != ERR_NONE) == blocked, "blocked: \"%s\"", trial->blocked.message);
    EXPECT(trial->stored == 0, "%zu completions in the store", trial->stored);
    expect_sound(trial);
}

/* ---- another host ---- */

static void redirect(const char *name, unsigned format)
{
    static const int codes[] = {301, 302, 303, 307, 308};
    struct server other = provider_start(NULL, 10);
    int64_t requests = 0;
    for (size_t i = 0; i < COUNT(codes); i++) {
        char line[128];
        snprintf(line, sizeof line, "status code=%d text=http://localhost:%d/v1/elsewhere",
                 codes[i], other.port);
        struct server provider = provider_start((const char *const[SCRIPT_MOST]){line}, 10);
        struct trial trial = {.format = format, .url = base_url(format, provider.port)};
        trial_run(&trial);
        struct counts counts = counts_get(provider.port);
        expect_fault(&trial, FAULT_FATAL, 1, false);
        EXPECT(counts.chats == 1, "%" PRId64 " requests", counts.chats);
        requests += counts.chats;
        server_stop(&provider, SIGKILL);
        trial_free(&trial);
    }
    struct counts there = counts_get(other.port);
    EXPECT(there.requests == 0 && there.keys == 0, "%" PRId64 " requests, %" PRId64 " keys there",
           there.requests, there.keys);
    server_stop(&other, SIGKILL);
    row_end(name, format, requests);
}

/* ---- nobody there ---- */

static void unreachable(const char *name, unsigned format, const char *url)
{
    struct trial trial = {.format = format, .url = url, .connect_ms = 150};
    trial_run(&trial);
    expect_fault(&trial, FAULT_RETRY, 4, false);
    EXPECT(trial.spent.micro_dollars == 0, "%" PRId64 " micro-dollars for nothing",
           trial.spent.micro_dollars);
    EXPECT(trial.ticks > 0, "the loop stood still: %d ticks", trial.ticks);
    row_end(name, format, trial.totals.requests);
    trial_free(&trial);
}

static void not_resolved(const char *name, unsigned format)
{
    unreachable(name, format, "http://nobody.invalid/v1");
}

/* A socket that does not listen, or listens with its queue full, so that the kernel lets further
 * connections hang. */
static void no_listener(const char *name, unsigned format, bool full)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fill[4], fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT(bind(fd, (struct sockaddr *)&address, length) == 0 &&
               getsockname(fd, (struct sockaddr *)&address, &length) == 0 &&
               (!full || listen(fd, 0) == 0),
           "no socket");
    for (size_t i = 0; full && i < COUNT(fill); i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(fill[i], (struct sockaddr *)&address, sizeof address);
    }
    usleep(20000);
    unreachable(name, format, base_url(format, ntohs(address.sin_port)));
    for (size_t i = 0; full && i < COUNT(fill); i++)
        close(fill[i]);
    close(fd);
}

static void refused(const char *name, unsigned format)
{
    no_listener(name, format, false);
}

static void connect_time_out(const char *name, unsigned format)
{
    no_listener(name, format, true);
}

static void tls_failure(const char *name, unsigned format)
{
    static const char ca[] = TEST_SOURCE_DIR "/tests/fakes/tls/localhost.pem";
    static const struct {
        const char *host, *ca_file;
    } rows[] = {{"localhost", NULL}, {"127.0.0.1", ca}}; /* not trusted; another's certificate */
    struct server server = server_start(
        (const char *const[]){TEST_SOURCE_DIR "/tests/fakes/fake_tls.py", "http/1.1", NULL});
    for (size_t i = 0; i < COUNT(rows); i++) {
        char url[64];
        snprintf(url, sizeof url, "https://%s:%d/v1", rows[i].host, server.port);
        struct trial trial = {
            .format = format, .url = url, .ca_file = rows[i].ca_file, .asks = 2, .in_flight = 1};
        trial_run(&trial);
        expect_fault(&trial, FAULT_FATAL, 1, true);
        trial_free(&trial);
    }
    server_stop(&server, SIGKILL);
    row_end(name, format, 2);
}

/* ---- requests that share a key ---- */

/* Behind one that met 429 the others wait as long, and none is sent meanwhile. */
static void one_endpoint(const char *name, unsigned format)
{
    struct server provider =
        provider_start((const char *const[SCRIPT_MOST]){"status code=429 ms=300"}, 10);
    struct trial trial = {
        .format = format, .url = base_url(format, provider.port), .asks = 5, .in_flight = 1};
    trial_run(&trial);
    struct counts counts = counts_get(provider.port);
    expect_answers(&trial);
    EXPECT(counts.chats == 6, "%" PRId64 " requests, not 6", counts.chats);
    for (size_t i = 0; i < trial.asks; i++)
        EXPECT(trial.ended_ms[i] >= 300, "request %zu was answered after %" PRId64 " ms", i,
               trial.ended_ms[i]);
    server_stop(&provider, SIGKILL);
    row_end(name, format, counts.chats);
    trial_free(&trial);
}

static void key_stops(const char *name, unsigned format)
{
    struct server provider =
        provider_start((const char *const[SCRIPT_MOST]){"status code=403 times=0"}, 10);
    struct trial trial = {
        .format = format, .url = base_url(format, provider.port), .asks = 5, .in_flight = 1};
    trial_run(&trial);
    struct counts counts = counts_get(provider.port);
    EXPECT(counts.chats == 1, "%" PRId64 " requests, not 1", counts.chats);
    for (size_t i = 0; i < trial.asks; i++)
        EXPECT(trial.ask[i].err.code != ERR_NONE, "request %zu was answered", i);
    EXPECT(trial.blocked.code != ERR_NONE, "the key is not blocked");
    expect_sound(&trial);
    server_stop(&provider, SIGKILL);
    row_end(name, format, counts.chats);
    trial_free(&trial);
}

/* Six at once, ten failures: the breaker lets one at a time probe, and all are answered. */
static void breaker(const char *name, unsigned format)
{
    struct server provider =
        provider_start((const char *const[SCRIPT_MOST]){"status code=500 times=10"}, 10);
    struct trial trial = {.format = format,
                          .url = base_url(format, provider.port),
                          .asks = 6,
                          .in_flight = 6,
                          .tries = 12,
                          .break_after = 4};
    trial_run(&trial);
    struct counts counts = counts_get(provider.port);
    expect_answers(&trial);
    EXPECT(trial_logged(&trial, "provider.breaker_open"), "no pause");
    EXPECT(trial_logged(&trial, "provider.probe"), "no probe that failed");
    EXPECT(trial_logged(&trial, "provider.ready"), "it did not go on");
    EXPECT(counts.chats == 16, "%" PRId64 " requests, not 16", counts.chats);
    server_stop(&provider, SIGKILL);
    row_end(name, format, counts.chats);
    trial_free(&trial);
}

/* The peer lets go of a connection that both keep: no try is lost, as the one that there is shows.
 */
static void dead_keep_alive(const char *name, unsigned format)
{
    struct server provider = provider_start((const char *const[SCRIPT_MOST]){"dead times=3"}, 10);
    struct trial trial = {.format = format,
                          .url = base_url(format, provider.port),
                          .asks = 4,
                          .one_by_one = true,
                          .tries = 1};
    trial_run(&trial);
    struct counts counts = counts_get(provider.port);
    expect_answers(&trial);
    EXPECT(counts.chats == 4, "%" PRId64 " requests, not 4", counts.chats);
    server_stop(&provider, SIGKILL);
    row_end(name, format, counts.chats);
    trial_free(&trial);
}

/* ---- the same again ---- */

static void twice(const char *name, unsigned format, const char *line, enum fault fault)
{
    struct err err;
    struct server provider = provider_start((const char *const[SCRIPT_MOST]){line}, 50);
    struct trial first = {
        .format = format, .url = base_url(format, provider.port), .folder = "kept"};
    struct trial second = first;
    trial_run(&first);
    trial_run(&second);
    struct counts counts = counts_get(provider.port);
    char *folder = file_join(work_folder, "kept");
    EXPECT(first.ask[0].fault == fault && second.ask[0].fault == fault, "faults %d and %d",
           (int)first.ask[0].fault, (int)second.ask[0].fault);
    EXPECT(counts.chats == 1 && second.totals.requests == 0, "%" PRId64 " requests, not 1",
           counts.chats);
    EXPECT(second.ask[0].from_store && second.stored == 1, "not from the store");
    EXPECT(second.spent.micro_dollars == first.spent.micro_dollars && first.spent.micro_dollars > 0,
           "%" PRId64 " micro-dollars, then %" PRId64, first.spent.micro_dollars,
           second.spent.micro_dollars);
    EXPECT(!second.leaked && !second.hung, "the key is in the store, or it hung");
    if (fault == FAULT_NONE)
        EXPECT(strcmp(first.ask[0].completion.text, second.ask[0].completion.text) == 0,
               "another text");
    EXPECT(file_remove_tree(folder, &err) == 0, "cannot remove the store");
    mem_free(folder);
    server_stop(&provider, SIGKILL);
    row_end(name, format, counts.chats);
    trial_free(&first);
    trial_free(&second);
}

static void answer_twice(const char *name, unsigned format)
{
    twice(name, format, "ok", FAULT_NONE);
}

static void refusal_twice(const char *name, unsigned format)
{
    twice(name, format, "refuse", FAULT_REFUSED);
}

/* ---- what is in the text ---- */

static void code_blocks(const char *name, unsigned format)
{
    static const struct {
        const char *text, *code; /* NULL: none, and a word to the model */
    } rows[] = {
        {"I would tile the loops.\n", NULL},
        {"```c\nvoid kernel(int n) { a; }\n```\nBetter:\n```c\nvoid kernel(int n) { b; }\n```\n",
         "void kernel(int n) { b; }\n"},
        {"```markdown\nRun:\n```sh\nmake\n```\n```\n```c\nvoid kernel(int n) { c; }\n```\n",
         "void kernel(int n) { c; }\n"},
        {"```c\nvoid kernel(int n) { d;", NULL},
        {"~~~c\nvoid kernel(int n) { e; }\n~~~\n```c\nvoid kernel(int n) { f;",
         "void kernel(int n) { e; }\n"},
    };
    int64_t requests = 0;
    char *path = file_join(work_folder, "answer");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err;
        char line[128];
        const char *code = NULL;
        size_t length = 0;
        EXPECT(file_write(path, rows[i].text, strlen(rows[i].text), &err) == 0, "no file");
        snprintf(line, sizeof line, "say text=%s", path);
        struct server provider = provider_start((const char *const[SCRIPT_MOST]){line}, 10);
        struct trial trial = {.format = format, .url = base_url(format, provider.port)};
        trial_run(&trial);
        requests += counts_get(provider.port).chats;
        expect_answers(&trial);
        struct arena *arena = arena_new();
        int found =
            trial.ask[0].err.code != ERR_NONE
                ? -1
                : extract_code(arena, trial.ask[0].completion.text, "kernel", &code, &length, &err);
        if (rows[i].code == NULL)
            EXPECT(found != 0 && err.code == ERR_NOT_FOUND && err.message[0] != '\0',
                   "text %zu: code was found", i);
        else
            EXPECT(found == 0 && length == strlen(rows[i].code) &&
                       memcmp(code, rows[i].code, length) == 0,
                   "text %zu: another code", i);
        arena_free(arena);
        trial_free(&trial);
        server_stop(&provider, SIGKILL);
    }
    mem_free(path);
    row_end(name, format, requests);
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    void (*run)(const char *name, unsigned format);
} rows[] = {
    {"redirect to another host", redirect},
    {"name not resolved", not_resolved},
    {"connection refused", refused},
    {"connect time-out", connect_time_out},
    {"TLS failure", tls_failure},
    {"429: one rate limit for the key", one_endpoint},
    {"403: the key stops for all", key_stops},
    {"5xx again and again: a breaker pauses and probes", breaker},
    {"dead keep-alive", dead_keep_alive},
    {"the same answer twice after a resume", answer_twice},
    {"refusal: not asked again in the same words", refusal_twice},
    {"no code block, several, nested, unclosed", code_blocks},
};

void run_more(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        for (unsigned format = OPENAI; format <= RESPONSES; format *= 2)
            if (row_wanted(rows[i].name))
                rows[i].run(rows[i].name, format);
    run_preflight();
    run_clocks();
    run_http2();
}
