/* fake_provider: each fault, in whichever format the request was. */
#include "fake_provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 1 << 20 };

static struct response built(const struct chat *chat, struct answer answer)
{
    char *text = NULL;
    if (answer.text == NULL)
        answer.text = text = answer_text(chat);
    struct response response = answer_build(chat, &answer);
    free(text);
    return response;
}

static struct response respond_ok(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    return answer_good(chat);
}

static struct response respond_status(const struct fault *fault, const struct chat *chat)
{
    char extra[640] = "", line[320], date[64];
    if (fault->text[0] != '\0')
        snprintf(extra, sizeof extra, "%s: %s\r\n",
                 fault->code >= 300 && fault->code < 400 ? "Location" : "Retry-After", fault->text);
    if (fault->date != 0) {
        time_t when = time(NULL) + fault->date;
        struct tm tm;
        strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&when, &tm));
        snprintf(extra, sizeof extra, "Retry-After: %s\r\n", date);
    }
    if (fault->ms >= 0) {
        snprintf(line, sizeof line, "retry-after-ms: %ld\r\n", fault->ms);
        strncat(extra, line, sizeof extra - strlen(extra) - 1);
    }
    return json_page(fault->code, extra, chat->format->error(fault->code, fault->kind));
}

/* The good answer's first bytes, then an end of another kind. */
static struct response cut(const struct fault *fault, const struct chat *chat, enum ending ending)
{
    struct response good = answer_good(chat);
    size_t length = (size_t)fault->after;
    if (length > good.bytes->length)
        length = good.bytes->length;
    struct bytes *bytes = bytes_new();
    bytes_add(bytes, good.bytes->data, length);
    bytes_release(good.bytes);
    return (struct response){.bytes = bytes, .ending = ending, .rate = good.rate};
}

static struct response respond_reset(const struct fault *fault, const struct chat *chat)
{
    return cut(fault, chat, END_RESET);
}

static struct response respond_close(const struct fault *fault, const struct chat *chat)
{
    return cut(fault, chat, END_CLOSE);
}

static struct response respond_stall(const struct fault *fault, const struct chat *chat)
{
    return cut(fault, chat, END_STALL);
}

static struct response respond_dead(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    struct response response = answer_good(chat);
    response.ending = END_DEAD;
    return response;
}

static struct response respond_html(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    (void)chat;
    const char *body = "<!doctype html><title>Sign in</title><p>Welcome to the hotel.";
    return (struct response){.bytes = page(200, "text/html", "", body, strlen(body))};
}

/* The answer, by another name; code=1: words of nobody's format. */
static struct response respond_plain(const struct fault *fault, const struct chat *chat)
{
    static const char json[] = "application/json", stream[] = "text/event-stream",
                      plain[] = "text/plain";
    struct response good = answer_good(chat);
    struct bytes *bytes = bytes_new();
    if (fault->code == 1) {
        bytes_release(bytes);
        bytes_release(good.bytes);
        return (struct response){.bytes = page(200, plain, "", "It is done.", 11)};
    }
    bytes_add(good.bytes, "", 1);
    const char *at = strstr(good.bytes->data, json), *name = at != NULL ? json : stream;
    at = at != NULL ? at : strstr(good.bytes->data, stream);
    size_t before = (size_t)(at - (const char *)good.bytes->data);
    bytes_add(bytes, good.bytes->data, before);
    bytes_add(bytes, plain, sizeof plain - 1);
    before += strlen(name);
    bytes_add(bytes, good.bytes->data + before, good.bytes->length - 1 - before);
    bytes_release(good.bytes);
    good.bytes = bytes;
    return good;
}

/* An answer of after=BYTES, whatever max_tokens says. */
static struct response respond_long(const struct fault *fault, const struct chat *chat)
{
    size_t length = (size_t)fault->after;
    char *text = malloc(length + 1);
    if (text == NULL)
        exit(2);
    memset(text, 'x', length);
    text[length] = '\0';
    struct response response = built(chat, (struct answer){.text = text});
    free(text);
    return response;
}

static struct response respond_drip(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    struct response response = answer_good(chat);
    response.rate = -1;
    return response;
}

/* text=lf|crlf|cr; code=1: several data lines an event, comments, unknown fields, a byte order
 * mark; times of -1 for rate are drip's. */
static struct response respond_lines(const struct fault *fault, const struct chat *chat)
{
    struct answer answer = {.line_end = strcmp(fault->text, "cr") == 0     ? LINE_CR
                                        : strcmp(fault->text, "crlf") == 0 ? LINE_CRLF
                                                                           : LINE_LF,
                            .split = fault->code == 1,
                            .comments = fault->code == 1};
    struct response response = built(chat, answer);
    response.rate = -1;
    return response;
}

/* Whole as HTTP, cut as JSON; as a stream, without its terminal event. */
static struct response respond_truncate(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    return built(chat, (struct answer){.no_end = true});
}

static struct response respond_garble(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    return built(chat, (struct answer){.garbled = 2});
}

static struct response respond_length(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    return built(chat, (struct answer){.finish = FINISH_LENGTH});
}

static struct response respond_refuse(const struct fault *fault, const struct chat *chat)
{
    bool filter = strcmp(fault->text, "filter") == 0;
    return built(chat, (struct answer){.finish = filter ? FINISH_FILTERED : FINISH_REFUSED});
}

static struct response respond_error(const struct fault *fault, const struct chat *chat)
{
    return built(chat, (struct answer){.error = fault->code, .kind = fault->kind});
}

/* An answer that only announces one, then the answer. */
static struct response respond_hints(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    struct response good = answer_good(chat);
    struct bytes *bytes = bytes_new();
    bytes_addf(bytes, "HTTP/1.1 103 Early Hints\r\nRetry-After: 99\r\n\r\n");
    bytes_add(bytes, good.bytes->data, good.bytes->length);
    bytes_release(good.bytes);
    return (struct response){.bytes = bytes, .rate = good.rate};
}

static struct response respond_empty(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    return built(chat, (struct answer){.empty = true});
}

static struct response respond_null(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    return built(chat, (struct answer){.null_content = true});
}

static struct response respond_usage(const struct fault *fault, const struct chat *chat)
{
    static const char *const names[] = {"right", "missing", "wrong", "negative",
                                        "text",  "huge",    "one",   "cut"};
    size_t kind = 0;
    while (kind + 1 < sizeof names / sizeof *names && strcmp(names[kind], fault->text) != 0)
        kind++;
    return built(chat, (struct answer){.usage = (enum usage)kind});
}

static struct response respond_bytes(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    return built(chat, (struct answer){.whole = true,
                                       .text = "before @BAD@ @NUL@ @LONE@ after\n```c\nvoid "
                                               "kernel(void) { /* @BAD@ */ }\n```\n"});
}

static struct response respond_say(const struct fault *fault, const struct chat *chat)
{
    char *text = bytes_read_file(fault->text);
    if (text == NULL) {
        fprintf(stderr, "fake_provider: cannot read %s\n", fault->text);
        exit(2);
    }
    struct response response = built(chat, (struct answer){.text = text});
    free(text);
    return response;
}

/* Signs of life without an answer, for ever. */
static struct response respond_pings(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    struct response response = {.bytes = stream_head(), .rate = 500, .repeat_times = -1};
    const char *ping = chat->format == &format_anthropic
                           ? "event: ping\ndata: {\"type\": \"ping\"}\n\n"
                           : ": ping\n\n";
    response.repeat_from = response.bytes->length;
    bytes_addf(response.bytes, "%zx\r\n%s\r\n", strlen(ping), ping);
    return response;
}

/* code=1: one line of after=BYTES in a stream; else a JSON body of as many. */
static struct response respond_flood(const struct fault *fault, const struct chat *chat)
{
    (void)chat;
    struct response response = {.repeat_times = fault->after / BLOCK};
    static char block[BLOCK];
    memset(block, 'a', sizeof block);
    if (fault->code == 1) {
        response.bytes = stream_head();
        bytes_addf(response.bytes, "8\r\ndata: {\"\r\n");
        response.repeat_from = response.bytes->length;
        bytes_addf(response.bytes, "%x\r\n", BLOCK);
        bytes_add(response.bytes, block, BLOCK);
        bytes_addf(response.bytes, "\r\n");
    } else {
        response.bytes = bytes_new();
        bytes_addf(response.bytes,
                   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                   "Content-Length: %ld\r\n\r\n{\"",
                   2 + BLOCK * (response.repeat_times + 1));
        response.repeat_from = response.bytes->length;
        bytes_add(response.bytes, block, BLOCK);
    }
    return response;
}

static void put_bits(struct bytes *bytes, uint32_t *held, int *count, uint32_t bits, int width)
{
    *held |= bits << *count;
    for (*count += width; *count >= 8; *count -= 8, *held >>= 8)
        bytes_add(bytes, held, 1); /* little-endian machines alone; so are ours */
}

/* after=BYTES of one letter, deflated by hand with fixed codes (RFC 1951, 3.2.6): a literal, then
 * copies of 258 bytes from one byte back, 13 bits each. */
static struct response respond_bomb(const struct fault *fault, const struct chat *chat)
{
    (void)chat;
    struct bytes *body = bytes_new();
    bytes_add(body, "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
    uint32_t held = 0;
    int count = 0;
    put_bits(body, &held, &count, 3, 3);    /* the last block, fixed codes */
    put_bits(body, &held, &count, 0x89, 8); /* 'a' is 10010001, first bit first */
    for (long left = fault->after; left > 0; left -= 258)
        put_bits(body, &held, &count, 0xa3, 13); /* 11000101, then distance 00000 */
    put_bits(body, &held, &count, 0, 7);         /* the end of the block */
    put_bits(body, &held, &count, 0, 7);
    bytes_add(body, "\0\0\0\0\0\0\0\0", 8);
    struct response response = {.bytes = page(200, "application/json", "Content-Encoding: gzip\r\n",
                                              body->data, body->length)};
    bytes_release(body);
    return response;
}

const struct fault_type fault_types[] = {
    {"ok", "the answer", respond_ok, true},
    {"status", "code=N [kind=K] [text=V] [ms=N] [date=N]: V is Retry-After, or Location for 3xx",
     respond_status, false},
    {"reset", "RST after=BYTES", respond_reset, false},
    {"close", "FIN after=BYTES", respond_close, false},
    {"stall", "silence after=BYTES", respond_stall, false},
    {"dead", "the answer, then RST at the connection's next request", respond_dead, true},
    {"html", "a page with status 200", respond_html, false},
    {"plain", "the answer as text/plain; code=1: words of no format", respond_plain, true},
    {"long", "an answer of after=BYTES", respond_long, true},
    {"drip", "a byte at a time", respond_drip, true},
    {"lines", "text=lf|crlf|cr, a byte at a time; code=1: several data lines, comments",
     respond_lines, true},
    {"truncate", "half a JSON document, or a stream without its end", respond_truncate, false},
    {"garble", "an event, or the document, cut in its JSON", respond_garble, false},
    {"hints", "103 Early Hints, then the answer", respond_hints, true},
    {"length", "cut at the most tokens allowed", respond_length, false},
    {"refuse", "a refusal; text=filter: by a content filter", respond_refuse, false},
    {"error", "code=N [kind=K]: an error event after status 200", respond_error, false},
    {"empty", "no choices", respond_empty, false},
    {"null", "a choice that says nothing", respond_null, false},
    {"usage", "text=missing|wrong|negative|text|huge|one|cut", respond_usage, true},
    {"bytes", "invalid UTF-8, NUL, a lone surrogate", respond_bytes, true},
    {"say", "text=FILE: that file as the answer", respond_say, true},
    {"pings", "signs of life for ever", respond_pings, false},
    {"flood", "a body of after=BYTES; code=1: a line", respond_flood, false},
    {"bomb", "gzip of after=BYTES", respond_bomb, false},
    {NULL, NULL, NULL, false},
};
