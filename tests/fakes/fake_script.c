/* fake_provider: which request gets which answer or fault.
 *
 * The script holds a line for each chat request, in order: NAME [key=value]...; a line with
 * times=N stands for N requests, times=0 for all that follow; after the last line all is well. */
#include "fake_provider.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAULTS_MOST = 256 };

struct fault {
    const struct fault_type *type;
    long code;      /* code=429 */
    long after;     /* after=BYTES of the response, head included */
    long times;     /* times=N; 0: for ever */
    char text[256]; /* text=..., up to a blank: Retry-After's value, Location's value */
};

struct fault_type {
    const char *name, *help;
    struct response (*respond)(const struct fault *fault, const struct chat *chat);
    bool delivers; /* the whole answer: the next request gets the next one */
};

static struct options options;
static struct fault script[FAULTS_MOST];
static size_t script_length, script_next, answer_next;
static struct {
    unsigned requests, chats, streams, models, faults, refused;
} counts;

static struct response respond_ok(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    return good_answer(chat);
}

static struct response respond_status(const struct fault *fault, const struct chat *chat)
{
    (void)chat;
    char extra[512] = "";
    const char *body = "{\"error\":{\"message\":\"as scripted\",\"type\":\"scripted\"}}";
    if (fault->text[0] != '\0')
        snprintf(extra, sizeof extra, "%s: %s\r\n",
                 fault->code >= 300 && fault->code < 400 ? "Location" : "Retry-After", fault->text);
    return (struct response){.bytes =
                                 page(fault->code, "application/json", extra, body, strlen(body))};
}

/* The good answer's first bytes, then an end of another kind. */
static struct response cut(const struct fault *fault, const struct chat *chat, enum ending ending)
{
    struct response good = good_answer(chat);
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

static struct response respond_html(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    (void)chat;
    const char *body = "<!doctype html><title>Sign in</title><p>Welcome to the hotel.";
    return (struct response){.bytes = page(200, "text/html", "", body, strlen(body))};
}

static struct response respond_drip(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    struct response response = good_answer(chat);
    response.rate = -1;
    return response;
}

/* Whole as HTTP, cut as JSON; as a stream, without its terminal event. */
static struct response respond_truncate(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    const char *text = answers_text(chat);
    if (chat->stream)
        return (struct response){.bytes = stream_answer(text, "stop", false, false)};
    const char *body = "{\"id\":\"chatcmpl-fake\",\"choices\":[{\"index\":0,\"message\":{\"ro";
    return (struct response){.bytes = page(200, "application/json", "", body, strlen(body))};
}

static struct response respond_length(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    const char *text = answers_text(chat);
    return (struct response){.bytes = chat->stream
                                          ? stream_answer(text, "length", chat->usage, true)
                                          : plain_answer(text, "length")};
}

/* An answer that only announces one, then the answer. */
static struct response respond_hints(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    struct response good = good_answer(chat);
    struct bytes *bytes = bytes_new();
    bytes_addf(bytes, "HTTP/1.1 103 Early Hints\r\nRetry-After: 99\r\n\r\n");
    bytes_add(bytes, good.bytes->data, good.bytes->length);
    bytes_release(good.bytes);
    return (struct response){.bytes = bytes, .rate = good.rate};
}

static struct response respond_empty(const struct fault *fault, const struct chat *chat)
{
    (void)fault;
    (void)chat;
    return json_page(200, json_pack("{s:s,s:[]}", "id", "chatcmpl-fake", "choices"));
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

static const struct fault_type fault_types[] = {
    {"ok", "the answer", respond_ok, true},
    {"status", "code=N [text=V]: V is Retry-After, or Location for 3xx", respond_status, false},
    {"reset", "RST after=BYTES", respond_reset, false},
    {"close", "FIN after=BYTES", respond_close, false},
    {"stall", "silence after=BYTES", respond_stall, false},
    {"html", "a page with status 200", respond_html, false},
    {"drip", "a byte at a time", respond_drip, true},
    {"truncate", "half a JSON document, or a stream without its end", respond_truncate, false},
    {"hints", "103 Early Hints, then the answer", respond_hints, true},
    {"length", "finish_reason length", respond_length, false},
    {"empty", "no choices", respond_empty, false},
    {"bomb", "gzip of after=BYTES", respond_bomb, false},
};

static _Noreturn void refuse(const char *what, const char *detail)
{
    fprintf(stderr, "fake_provider: %s: %s\n", what, detail);
    for (size_t i = 0; i < sizeof fault_types / sizeof fault_types[0]; i++)
        fprintf(stderr, "  %-9s %s\n", fault_types[i].name, fault_types[i].help);
    exit(2);
}

static void set_key(struct fault *fault, const char *word)
{
    const char *value = strchr(word, '=');
    if (value == NULL)
        refuse("expected key=value", word);
    value++;
    if (strncmp(word, "code=", 5) == 0)
        fault->code = strtol(value, NULL, 10);
    else if (strncmp(word, "after=", 6) == 0)
        fault->after = strtol(value, NULL, 10);
    else if (strncmp(word, "times=", 6) == 0)
        fault->times = strtol(value, NULL, 10);
    else if (strncmp(word, "text=", 5) == 0)
        snprintf(fault->text, sizeof fault->text, "%s", value);
    else
        refuse("unknown key", word);
}

void script_add(const char *line)
{
    char copy[512], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", line);
    const char *name = strtok_r(copy, " \t\n", &rest);
    if (name == NULL || name[0] == '#')
        return;
    if (script_length == FAULTS_MOST)
        refuse("too many lines", line);
    struct fault *fault = &script[script_length++];
    *fault = (struct fault){.code = 500, .times = 1};
    for (size_t i = 0; i < sizeof fault_types / sizeof fault_types[0]; i++) {
        if (strcmp(name, fault_types[i].name) == 0)
            fault->type = &fault_types[i];
    }
    if (fault->type == NULL)
        refuse("unknown fault", name);
    for (const char *word; (word = strtok_r(NULL, " \t\n", &rest)) != NULL;)
        set_key(fault, word);
}

void script_init(const struct options *given)
{
    options = *given;
    if (options.script == NULL)
        return;
    char *text = bytes_read_file(options.script), *rest = NULL;
    if (text == NULL)
        refuse("cannot read", options.script);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        script_add(line);
    free(text);
}

/* --- requests --- */

static void record(const struct request *request)
{
    char path[4096];
    if (options.record == NULL)
        return;
    snprintf(path, sizeof path, "%s/%06u.json", options.record, counts.chats);
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        refuse("cannot write", path);
    fwrite(request->body, 1, request->body_length, file);
    fclose(file);
}

static const struct fault *next_fault(void)
{
    static const struct fault well = {.type = &fault_types[0]};
    if (script_next == script_length)
        return &well;
    struct fault *fault = &script[script_next];
    if (fault->times > 0 && --fault->times == 0)
        script_next++;
    return fault;
}

static struct response respond_chat(const struct request *request)
{
    counts.chats++;
    record(request);
    json_t *document = json_loadb(request->body, request->body_length, 0, NULL);
    const json_t *messages = json_object_get(document, "messages");
    if (!json_is_array(messages) || json_array_size(messages) == 0 ||
        !json_is_string(json_object_get(document, "model"))) {
        json_decref(document);
        counts.refused++;
        return error_page(400, "invalid_request_error", "model and messages are needed");
    }
    const json_t *stream_options = json_object_get(document, "stream_options");
    struct chat chat = {
        .stream = json_is_true(json_object_get(document, "stream")),
        .usage = json_is_true(json_object_get(stream_options, "include_usage")),
        .answer = answer_next,
    };
    json_decref(document);
    counts.streams += chat.stream;
    const struct fault *fault = next_fault();
    struct response response = fault->type->respond(fault, &chat);
    counts.faults += fault->type != &fault_types[0];
    answer_next += fault->type->delivers; /* else it is kept for the next request */
    return response;
}

static struct response respond_models(const struct request *request)
{
    (void)request;
    counts.models++;
    return json_page(200, json_pack("{s:s,s:[{s:s,s:s}]}", "object", "list", "data", "id",
                                    options.model, "object", "model"));
}

static const struct route {
    const char *method, *path;
    struct response (*respond)(const struct request *request);
} routes[] = {
    {"POST", "/v1/chat/completions", respond_chat},
    {"GET", "/v1/models", respond_models},
};

struct response script_respond(const struct request *request, unsigned connections_open,
                               unsigned connections_accepted)
{
    if (strcmp(request->path, "/_counts") == 0)
        return json_page(200, json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "requests",
                                        counts.requests, "chat", counts.chats, "streams",
                                        counts.streams, "models", counts.models, "faults",
                                        counts.faults, "refused", counts.refused, "open",
                                        connections_open, "connections", connections_accepted));
    counts.requests++;
    if (options.key != NULL && (strncmp(request->authorization, "Bearer ", 7) != 0 ||
                                strcmp(request->authorization + 7, options.key) != 0)) {
        counts.refused++;
        return error_page(401, "authentication_error", "wrong key");
    }
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (strcmp(request->method, routes[i].method) == 0 &&
            strcmp(request->path, routes[i].path) == 0)
            return routes[i].respond(request);
    }
    counts.refused++;
    struct response response = error_page(404, "not_found", "no such path");
    if (strcmp(request->method, "HEAD") == 0) /* the head alone */
        response.bytes->length =
            (size_t)(strstr(response.bytes->data, "\r\n\r\n") + 4 - response.bytes->data);
    return response;
}
