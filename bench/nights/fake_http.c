/* loop/http.h for three providers, http://a.invalid, b, c, that keep to a script, in virtual time:
 * a request is a list of what comes when, and its limits are those of the real one. */
#include "nights.h"

#include "../night/night.h"

#include "agents/ideas/ideas.h"
#include "base/json.h"
#include "base/mem.h"
#include "loop/http.h"
#include "loop/loop.h"
#include "loop/private.h"
#include "loop/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 4, BYTES_A_TOKEN = 4 };
static const double dollars_a_token[2] = {1e-6, 4e-6}; /* of a prompt, of an answer; nights.c */

const struct script *script;
static double billed, dearest;
static struct {
    uint64_t *prompts; /* what was answered to the end, by night_hash() */
    size_t count, capacity;
} answered;

struct http {
    struct loop *loop;
};

struct http_request {
    struct http *http;
    struct task *owner;
    struct timer timer;
    const struct outage *outage;
    unsigned provider;
    uint64_t prompt;
    bool done, connected, stale, ideas;
    int status, words; /* words: pieces of the text that came */
    const char *type, *retry;
    struct buf text, body;
    size_t consumed;
    int64_t prompt_bytes, max_tokens;
    double start_ms, last_ms, word_ms, end_ms;
    uint64_t limit_ms[4]; /* connect, first byte, between bytes, total */
    struct err error;
};

double fake_bill_dollars(void)
{
    return billed;
}

double fake_dearest_dollars(void)
{
    return dearest;
}

struct http *http_new(struct loop *loop, struct err *err)
{
    struct http *http = MEM_NEW(struct http);
    (void)err;
    http->loop = loop;
    return http;
}

void http_free(struct http *http)
{
    mem_free(http);
}

/* ---- what is answered ---- */

/* What an answer says and how long it takes is drawn by what is asked, not by when or of whom: a
 * night with an outage gets the answers that the undisturbed one gets, only later. */
static uint64_t draw_of(uint64_t prompt)
{
    int64_t before = 0;
    for (size_t i = 0; i < answered.count; i++)
        before += answered.prompts[i] == prompt;
    return night_hash("answer", "", (int64_t)(prompt + (uint64_t)before));
}

static void note_answered(uint64_t prompt)
{
    if (answered.count == answered.capacity) {
        answered.capacity = answered.capacity > 0 ? 2 * answered.capacity : 1024;
        answered.prompts =
            mem_resize(answered.prompts, answered.capacity * sizeof answered.prompts[0]);
    }
    answered.prompts[answered.count++] = prompt;
}

static void put_ideas(struct buf *out, uint64_t hash)
{
    buf_add_text(out, "{\"ideas\": [");
    for (int i = 0; i < 64; i++) { /* near-duplicates of tried ideas would be dropped */
        buf_addf(out, "%s{\"title\": \"", i > 0 ? ", " : "");
        for (int k = 0; k < 14; k++)
            buf_addf(out, "%sw%06llx", k == 6 ? "\", \"category\": \"memory\", \"why\": \"" : " ",
                     (unsigned long long)(night_hash("word", "", (int64_t)hash + 100 * i + k) &
                                          0xffffff));
        buf_add_text(out, "\", \"expected\": 1.2, \"parent\": \"\"}");
    }
    buf_add_text(out, "]}");
}

static void put_code(struct buf *out, uint64_t hash)
{
    buf_addf(out,
             "```c\n/* %016llx */\nvoid kernel(const float *A, const float *B, float *C, "
             "int64_t M, int64_t N, int64_t K)\n{\n    for (int64_t i = 0; i < M * N; i++)\n"
             "        C[i] = 0;\n}\n```\n",
             (unsigned long long)hash);
    for (uint64_t i = 0; i < hash % 40; i++) /* a sentence or two */
        buf_add_text(out, "The outer loop is blocked so that a row of B stays in the cache. ");
}

/* What it wrote so far, whether or not that was seen; what it read. */
static void tokens(const struct http_request *request, int64_t *prompt, int64_t *completion)
{
    const struct bills *bills = &script->bills;
    size_t seen = request->text.length * (size_t)request->words / WORDS;
    *prompt = request->prompt_bytes / BYTES_A_TOKEN + bills->prompt_tokens;
    *completion = (int64_t)((double)(seen / BYTES_A_TOKEN) * (1 + bills->reasoning));
}

static void add_event(struct http_request *request, const char *content, size_t length)
{
    struct json json;
    buf_add_text(&request->body, "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":");
    json_init(&json, &request->body);
    json_text_n(&json, content, length);
    buf_add_text(&request->body, "}}]}\n\n");
}

static void add_word(struct http_request *request)
{
    size_t each = request->text.length / WORDS, from = each * (size_t)request->words;
    bool last = request->words + 1 == WORDS;
    int64_t prompt, completion;
    add_event(request, buf_text(&request->text) + from, last ? request->text.length - from : each);
    request->words++;
    if (!last)
        return;
    tokens(request, &prompt, &completion);
    buf_add_text(&request->body,
                 "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
    if (script->bills.odd)
        buf_add_text(&request->body, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":NaN,"
                                     "\"completion_tokens\":1e999}}\n\n");
    else if (script->bills.one)
        buf_add_text(&request->body, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,"
                                     "\"completion_tokens\":1}}\n\n");
    else if (script->bills.costs)
        buf_addf(&request->body,
                 "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%lld,"
                 "\"completion_tokens\":%lld,\"cost\":%.9f}}\n\n",
                 (long long)prompt, (long long)((double)completion / (1 + script->bills.reasoning)),
                 (double)prompt * dollars_a_token[0] + (double)completion * dollars_a_token[1]);
    else if (!script->bills.silent)
        buf_addf(&request->body,
                 "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%lld,"
                 "\"completion_tokens\":%lld}}\n\n",
                 (long long)prompt, (long long)completion);
    buf_add_text(&request->body, "data: [DONE]\n\n");
}

/* ---- its course ---- */

static void finish(struct http_request *request)
{
    int64_t prompt, completion;
    timer_stop(&request->timer);
    request->done = true;
    if (request->words == WORDS)
        note_answered(request->prompt);
    tokens(request, &prompt, &completion);
    bool read = request->status == 200 && request->outage->kind != PAGES &&
                request->outage->kind != PINGS && request->outage->kind != ERROR_529;
    double cost =
        read ? (double)prompt * dollars_a_token[0] + (double)completion * dollars_a_token[1] : 0;
    billed += cost;
    dearest = cost > dearest ? cost : dearest;
    printf("request %c %.0f %.0f %s\n", 'a' + (int)request->provider, request->start_ms,
           virtual_ms(), request->words == WORDS ? "ok" : "lost");
}

static void end(struct http_request *request, enum err_code code, const char *words)
{
    if (code != ERR_NONE)
        err_set(&request->error, code, "POST %c.invalid: %s", 'a' + (int)request->provider, words);
    finish(request);
    task_complete(request->owner);
}

static void on_timer(struct timer *timer);

static void wait_for(struct http_request *request, double at_ms)
{
    static const char *const names[] = {"connect", "first-byte", "between-bytes", "total"};
    int limit = !request->connected ? 0 : request->last_ms <= 0 ? 1 : 2;
    double since = limit == 2 ? request->last_ms : request->start_ms;
    double deadline = since + (double)request->limit_ms[limit];
    double total = request->start_ms + (double)request->limit_ms[3];
    (void)names;
    deadline = total < deadline ? total : deadline;
    double next = at_ms > 0 && at_ms < deadline ? at_ms : deadline;
    double left = next - virtual_ms();
    request->word_ms = at_ms > 0 && at_ms < deadline ? at_ms : -1;
    timer_call(request->http->loop, &request->timer, on_timer, left > 1 ? (uint64_t)left : 1);
}

static void speak(struct http_request *request)
{
    enum kind kind = request->outage->kind;
    double now = virtual_ms();
    request->status = 200;
    request->last_ms = now;
    if (kind == PINGS) {
        buf_add_text(&request->body, ": ping\n\n");
        wait_for(request, now + 10000);
    } else if (kind == DRIPS) {
        add_event(request, "word ", 5);
        wait_for(request, now + 60000);
    } else if (kind == CUTS && request->words >= WORDS / 2) {
        end(request, ERR_NETWORK, "connection reset by peer");
        return;
    } else if (kind == STALLS && request->words >= WORDS / 2) {
        wait_for(request, 0);
    } else if (kind == EMPTY) {
        buf_add_text(&request->body, "data: {\"choices\":[{\"delta\":{\"content\":\"\"},"
                                     "\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
        end(request, ERR_NONE, "");
        return;
    } else if (kind == GARBLES && request->words == 1) {
        buf_add_text(&request->body, "data: {\"choices\":[{\"del\n\n");
        end(request, ERR_NONE, "");
        return;
    } else {
        add_word(request);
        if (request->words == WORDS) {
            end(request, ERR_NONE, "");
            return;
        }
        wait_for(request, now + (request->end_ms - now) / (WORDS - request->words));
    }
    task_wake(request->owner);
}

static void on_timer(struct timer *timer)
{
    struct http_request *request = container_of(timer, struct http_request, timer);
    static const char *const limits[] = {"the connect limit has passed",
                                         "the first-byte limit has passed",
                                         "the between-bytes limit has passed"};
    enum kind kind = request->outage->kind;
    if (request->word_ms < 0) {
        end(request, ERR_TIMEOUT, limits[!request->connected ? 0 : request->last_ms <= 0 ? 1 : 2]);
    } else if (kind == REFUSES) {
        end(request, ERR_NETWORK, "connection refused");
    } else if (kind == RESETS) {
        end(request, ERR_NETWORK, "connection reset by peer");
    } else if (kind == STATUS) {
        request->status = request->outage->code;
        request->retry = request->outage->text;
        buf_add_text(&request->body, "{\"error\":{\"message\":\"as scripted\"}}");
        end(request, ERR_NONE, "");
    } else if (kind == PAGES) {
        request->status = 200;
        request->type = "text/html";
        buf_add_text(&request->body, "<html>We are back soon.</html>");
        end(request, ERR_NONE, "");
    } else if (kind == ERROR_529) {
        request->status = 200;
        buf_add_text(&request->body,
                     "data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n");
        end(request, ERR_NONE, "");
    } else {
        speak(request);
    }
}

/* ---- loop/http.h ---- */

static uint64_t or (uint64_t given, uint64_t usual)
{
    return given > 0 ? given : usual;
}

struct http_request *http_start(struct http *http, struct task *owner, const struct http_spec *spec,
                                struct err *err)
{
    struct http_request *request = MEM_NEW(struct http_request);
    (void)err;
    request->http = http;
    request->owner = owner;
    request->provider = (unsigned)(strstr(spec->url, "://")[3] - 'a');
    request->outage = script_now(script, request->provider);
    const char *messages = strstr(spec->body, "\"messages\"");
    request->prompt = night_hash("prompt", messages != NULL ? messages : spec->body, 0);
    request->type = "text/event-stream";
    request->retry = "";
    request->ideas = strstr(spec->body, "response_format") != NULL;
    request->prompt_bytes = (int64_t)spec->body_length;
    request->limit_ms[0] = or (spec->connect_ms, 10 * 1000);
    request->limit_ms[1] = or (spec->first_byte_ms, 10 * 60 * 1000);
    request->limit_ms[2] = or (spec->between_bytes_ms, 2 * 60 * 1000);
    request->limit_ms[3] = or (spec->total_ms, 60 * 60 * 1000);
    request->start_ms = virtual_ms();
    buf_init(&request->text, 1 << 20);
    buf_init(&request->body, 1 << 20);
    uint64_t hash = draw_of(request->prompt);
    enum kind kind = request->outage->kind;
    if (request->ideas)
        put_ideas(&request->text, hash);
    else
        put_code(&request->text, kind == REPEATS ? 7 : hash);
    double thinks = kind == THINKS ? 1000.0 * request->outage->code : 0;
    double takes =
        (double)night_draw(request->ideas ? latencies.ideas_s : latencies.code_s, hash) + thinks;
    request->end_ms = request->start_ms + takes;
    request->connected = kind != HANGS && kind != REFUSES;
    bool never = kind == SILENT || kind == HANGS || (kind == STALE && !spec->fresh);
    bool at_once =
        kind == REFUSES || kind == RESETS || kind == STATUS || kind == PAGES || kind == ERROR_529;
    task_expect(owner);
    wait_for(request, never     ? -1
                      : at_once ? request->start_ms + 300
                                : request->start_ms + thinks + (takes - thinks) / WORDS);
    return request;
}

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
    return strcmp(name, "content-type") == 0  ? request->type
           : strcmp(name, "retry-after") == 0 ? request->retry
                                              : "";
}

const char *http_body(const struct http_request *request, size_t *length)
{
    if (length != NULL)
        *length = request->body.length - request->consumed;
    return buf_text(&request->body) + request->consumed;
}

void http_consume(struct http_request *request, size_t length)
{
    request->consumed += length;
}

const struct err *http_error(const struct http_request *request)
{
    return &request->error;
}

bool http_error_is_tls(const struct http_request *request)
{
    (void)request;
    return false;
}

bool http_error_is_unresolved(const struct http_request *request)
{
    (void)request;
    return false;
}

bool http_error_is_stale(const struct http_request *request)
{
    return request->stale;
}

bool http_connected(const struct http_request *request)
{
    return request->connected;
}

void http_free_request(struct http_request *request)
{
    if (request == NULL)
        return;
    if (!request->done) {
        finish(request);
        task_forget(request->owner);
    }
    buf_free(&request->text);
    buf_free(&request->body);
    mem_free(request);
}
