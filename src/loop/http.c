/* loop/http: the life of a request and its limits.
 *
 *   connecting --connected--> waiting --first body byte--> streaming --> done
 *       connect limit     first-byte limit         between-bytes limit
 *   \________________________ total limit __________________________/
 *
 * One timer a request stands for the nearest limit. Bytes do not touch it: when it fires it looks
 * again at what has happened since. A limit that has passed counts only after the sockets were
 * looked at once more, since a process that was stopped for an hour finds its timers due before it
 * has read what arrived meanwhile. */
#include "loop/http.h"

#include "base/clock.h"
#include "base/mem.h"
#include "loop/http_private.h"
#include "loop/private.h"
#include "loop/task.h"

#include <string.h>
#include <strings.h>

#define NS_PER_MS UINT64_C(1000000)

enum { BODY_MAX = 16 << 20, HEADERS_MAX = 64 << 10 };

static const struct {
    const char *name;
    uint64_t default_ms;
} limit_table[LIMITS] = {
    [LIMIT_CONNECT] = {"connect", 10 * 1000},
    [LIMIT_FIRST_BYTE] = {"first-byte", 10 * 60 * 1000},
    [LIMIT_BETWEEN_BYTES] = {"between-bytes", 2 * 60 * 1000},
    [LIMIT_TOTAL] = {"total", 60 * 60 * 1000},
};

/* --- the end --- */

/* Ended by us, while nothing came: was it the request that nobody answers, or its connection? With
 * HTTP/2 libcurl would keep that, and give it the next request, and the one after. */
static void retire_silent(const struct http_request *request, bool limit)
{
    enum { SILENT_MS = 30 * 1000, SAME_MS = 100 }; /* SAME_MS: one read, for all that it brought */
    uint64_t since = request->last_byte_ns != 0 ? request->last_byte_ns : request->connected_ns;
    bool long_ago = clock_now_ns() - since >= SILENT_MS * NS_PER_MS;
    if (since != 0 && (limit || long_ago))
        http_connection_retire(request, since + SAME_MS * NS_PER_MS);
}

static void finish(struct http_request *request)
{
    timer_stop(&request->timer);
    http_multi_remove(request->http, request);
    if (request->error.code == ERR_TIMEOUT || request->error.code == ERR_CANCELLED)
        retire_silent(request, request->error.code == ERR_TIMEOUT);
    http_drop_easy(request);
    request->http->running--;
    request->done = true;
    http_origin_leave(request);
}

static void fail(struct http_request *request, enum err_code code, const char *message)
{
    err_set(&request->error, code, "%s: %s", request->what, message);
}

/* Errors that another try cannot mend: who is at the other end is not who was asked for. A reset
 * during the handshake is not among them. */
static bool is_trust(CURLcode code, CURL *easy)
{
    long verified = 0;
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        return true;
    case CURLE_SSL_CONNECT_ERROR: /* 1 is what libcurl sets before it has looked at any certificate
                                   */
        curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &verified);
        return verified > 1;
    default:
        return false;
    }
}

static bool on_kept_connection(CURL *easy)
{
    long connects = 1;
    return curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects) == CURLE_OK && connects == 0;
}

void http_transfer_done(struct http_request *request, CURLcode code)
{
    const char *words =
        request->curl_message[0] != '\0' ? request->curl_message : curl_easy_strerror(code);
    if (request->over_limit) {
        err_set(&request->error, ERR_LIMIT, "%s: the answer is longer than %zu bytes",
                request->what, request->body_max);
    } else if (request->unsolicited) {
        fail(request, ERR_NETWORK, "its kept connection said what nobody had asked for");
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        fail(request, ERR_TIMEOUT, words);
    } else if (code == CURLE_OK && !request->head_ended) { /* which libcurl lets pass */
        fail(request, ERR_NETWORK, "the connection ended inside the answer's head");
    } else if (code != CURLE_OK) {
        fail(request, ERR_NETWORK, words);
        request->tls = is_trust(code, request->easy);
    }
    request->unresolved = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY;
    request->stale = request->error.code == ERR_NETWORK && http_connected(request) &&
                     request->headers.length == 0 && request->status == 0 &&
                     on_kept_connection(request->easy);
    finish(request);
    task_complete(request->owner);
}

/* --- limits --- */

static uint64_t after(uint64_t start_ns, uint64_t limit_ms)
{
    uint64_t most_ms = (UINT64_MAX - start_ns) / NS_PER_MS;
    return limit_ms > most_ms ? UINT64_MAX : start_ns + limit_ms * NS_PER_MS;
}

static uint64_t next_deadline(const struct http_request *request, enum http_limit *limit)
{
    uint64_t start_ns = request->started_ns;
    *limit = LIMIT_CONNECT;
    if (request->last_byte_ns != 0) {
        start_ns = request->last_byte_ns;
        *limit = LIMIT_BETWEEN_BYTES;
    } else if (request->connected_ns != 0) {
        start_ns = request->connected_ns;
        *limit = LIMIT_FIRST_BYTE;
    }
    uint64_t deadline = after(start_ns, request->limit_ms[*limit]);
    uint64_t total = after(request->started_ns, request->limit_ms[LIMIT_TOTAL]);
    if (total < deadline) {
        *limit = LIMIT_TOTAL;
        deadline = total;
    }
    return deadline;
}

static void on_limit(struct timer *timer);

static void watch(struct http_request *request)
{
    enum http_limit limit;
    uint64_t now = clock_now_ns(), deadline = next_deadline(request, &limit);
    uint64_t left_ms = deadline > now ? (deadline - now - 1) / NS_PER_MS + 1 : 1;
    timer_call(request->http->loop, &request->timer, on_limit, left_ms);
}

void http_begin_limits(struct http_request *request)
{
    request->started_ns = clock_now_ns();
    watch(request);
}

static void on_limit(struct timer *timer)
{
    struct http_request *request = container_of(timer, struct http_request, timer);
    enum http_limit limit;
    if (http_origin_holds(request)) {
        http_begin_limits(request);
        return;
    }
    bool passed = clock_now_ns() >= next_deadline(request, &limit);
    if (!passed || !request->late) {
        request->late = passed;
        if (passed)
            http_multi_look(request->http);
        if (!request->done)
            watch(request);
        return;
    }
    err_set(&request->error, ERR_TIMEOUT, "%s: the %s limit of %.1f s has passed", request->what,
            limit_table[limit].name, (double)request->limit_ms[limit] / 1000.0);
    finish(request);
    task_complete(request->owner);
}

/* --- what arrives --- */

static uint64_t now_not_zero(void)
{
    uint64_t now = clock_now_ns();
    return now != 0 ? now : 1;
}

static bool speaks_http1(const struct http_request *request)
{
    return !request->tls_url || (request->origin != NULL && request->origin->kind == ORIGIN_SINGLE);
}

bool http_on_connected(struct http_request *request)
{
    /* With HTTP/2 answers have numbers, and a connection may speak of itself at any time. */
    request->unsolicited = on_kept_connection(request->easy) && speaks_http1(request) &&
                           http_connection_spoke(request);
    request->connected_ns = now_not_zero(); /* again where libcurl tries a fresh connection */
    watch(request);
    http_origin_connected(request);
    return !request->unsolicited;
}

size_t http_on_header(struct http_request *request, const char *line, size_t length)
{
    size_t kept = length;
    while (kept > 0 && (line[kept - 1] == '\r' || line[kept - 1] == '\n'))
        kept--;
    if (kept > 5 && memcmp(line, "HTTP/", 5) == 0) { /* another answer begins: forget a 1xx */
        const char *space = memchr(line, ' ', kept);
        int status = 0;
        for (const char *c = space; c != NULL && ++c < line + kept && *c >= '0' && *c <= '9';)
            status = status * 10 + (*c - '0');
        http_origin_speaks(request, line[5]);
        request->head_ended = false;
        request->status = status >= 200 && status <= 999 ? status : 0;
        buf_reset(&request->headers);
    } else if (kept == 0) {
        request->head_ended = true;
    } else if (request->headers.length + kept + 1 <= HEADERS_MAX) {
        buf_add(&request->headers, line, kept);
        buf_add_char(&request->headers, '\0');
    }
    return length;
}

size_t http_on_body(struct http_request *request, const char *bytes, size_t length)
{
    if (length == 0)
        return 0;
    if (length > request->body_max - request->received) {
        request->over_limit = true;
        return 0; /* ends the transfer */
    }
    bool first = request->last_byte_ns == 0;
    request->received += length;
    request->http->received += length;
    request->last_byte_ns = now_not_zero();
    if (first) {
        watch(request);
        http_drop_sent(request);
    }
    if (request->consumed > 0 && request->consumed >= request->body.length / 2) {
        buf_consume(&request->body, request->consumed);
        request->consumed = 0;
    }
    buf_add(&request->body, bytes, length);
    task_wake(request->owner);
    return length;
}

/* --- start, free --- */

struct http_request *http_start(struct http *http, struct task *owner, const struct http_spec *spec,
                                struct err *err)
{
    struct http_request *request = MEM_NEW(struct http_request);
    request->http = http;
    request->owner = owner;
    request->body_max = spec->body_max > 0 ? spec->body_max : BODY_MAX;
    buf_init(&request->headers, HEADERS_MAX);
    buf_init(&request->body, request->body_max);
    const uint64_t wanted_ms[LIMITS] = {
        [LIMIT_CONNECT] = spec->connect_ms,
        [LIMIT_FIRST_BYTE] = spec->first_byte_ms,
        [LIMIT_BETWEEN_BYTES] = spec->between_bytes_ms,
        [LIMIT_TOTAL] = spec->total_ms,
    };
    for (int i = 0; i < LIMITS; i++)
        request->limit_ms[i] = wanted_ms[i] > 0 ? wanted_ms[i] : limit_table[i].default_ms;
    if (http_make_easy(request, spec, err) != 0) {
        http_drop_easy(request);
        mem_free(request);
        return NULL;
    }
    http->running++;
    task_expect(owner);
    http_begin_limits(request);
    http_origin_enter(request);
    return request;
}

void http_free_request(struct http_request *request)
{
    if (request == NULL)
        return;
    if (!request->done) {
        fail(request, ERR_CANCELLED, "cancelled");
        finish(request);
        task_forget(request->owner);
    }
    buf_free(&request->headers);
    buf_free(&request->body);
    mem_free(request);
}

/* --- read --- */

bool http_done(const struct http_request *request)
{
    return request->done;
}

int http_status(const struct http_request *request)
{
    return request->status;
}

const char *http_header(const struct http_request *request, const char *name)
{
    const char *found = "";
    size_t name_length = strlen(name);
    const char *line = buf_text(&request->headers), *end = line + request->headers.length;
    for (; line < end; line += strlen(line) + 1) {
        if (strncasecmp(line, name, name_length) == 0 && line[name_length] == ':')
            found = line + name_length + 1;
    }
    return found + strspn(found, " \t");
}

const char *http_body(const struct http_request *request, size_t *length)
{
    if (length != NULL)
        *length = request->body.length - request->consumed;
    return buf_text(&request->body) + request->consumed;
}

void http_consume(struct http_request *request, size_t length)
{
    if (length > request->body.length - request->consumed)
        loop_die("http_consume() of more than has arrived");
    request->consumed += length;
    if (request->consumed == request->body.length) {
        buf_reset(&request->body);
        request->consumed = 0;
    }
}

const struct err *http_error(const struct http_request *request)
{
    return &request->error;
}

bool http_error_is_tls(const struct http_request *request)
{
    return request->tls;
}

bool http_error_is_unresolved(const struct http_request *request)
{
    return request->unresolved;
}

bool http_error_is_stale(const struct http_request *request)
{
    return request->stale;
}

bool http_connected(const struct http_request *request)
{
    return request->connected_ns != 0;
}
