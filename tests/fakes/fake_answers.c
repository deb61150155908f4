/* fake_provider: answers as OpenAI's chat completions, whole and streamed. An answer's text is the
 * next file of the folder, by name, over and over; without a folder it is made up. */
#include "fake_provider.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS_MOST = 1024 };

struct answer {
    char *text;
    struct bytes *plain, *stream[2]; /* built when first asked for; [1] with usage */
};

static struct options options;
static struct answer answers[ANSWERS_MOST];
static size_t answer_count;

static const char *reason(long code)
{
    return code == 200 ? "OK" : "Fault";
}

struct bytes *page(long code, const char *type, const char *extra, const char *body, size_t length)
{
    struct bytes *bytes = bytes_new();
    bytes_addf(bytes, "HTTP/1.1 %ld %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n", code,
               reason(code), type, length, extra);
    bytes_add(bytes, body, length);
    return bytes;
}

struct response json_page(long code, json_t *document)
{
    char *text = json_dumps(document, JSON_COMPACT);
    struct response response = {.bytes = page(code, "application/json", "", text, strlen(text))};
    free(text);
    json_decref(document);
    return response;
}

struct response error_page(long code, const char *type, const char *message)
{
    return json_page(
        code, json_pack("{s:{s:s,s:s,s:n}}", "error", "message", message, "type", type, "code"));
}

static json_t *usage(const char *text)
{
    json_int_t tokens = (json_int_t)(strlen(text) / 4 + 1);
    return json_pack("{s:i,s:I,s:I}", "prompt_tokens", 100, "completion_tokens", tokens,
                     "total_tokens", tokens + 100);
}

struct bytes *plain_answer(const char *text, const char *finish_reason)
{
    json_t *document =
        json_pack("{s:s,s:s,s:i,s:s,s:[{s:i,s:{s:s,s:s},s:s}],s:o}", "id", "chatcmpl-fake",
                  "object", "chat.completion", "created", 1700000000, "model", options.model,
                  "choices", "index", 0, "message", "role", "assistant", "content", text,
                  "finish_reason", finish_reason, "usage", usage(text));
    char *body = json_dumps(document, JSON_COMPACT);
    struct bytes *bytes = page(200, "application/json", "", body, strlen(body));
    free(body);
    json_decref(document);
    return bytes;
}

/* Each event is a chunk of the transfer coding, so any run of the bytes may be sent at a time. */
static void add_event(struct bytes *bytes, const char *data)
{
    bytes_addf(bytes, "%zx\r\ndata: %s\n\n\r\n", strlen(data) + 8, data);
}

static void add_delta(struct bytes *bytes, json_t *delta, const char *finish_reason)
{
    json_t *reason_json = finish_reason != NULL ? json_string(finish_reason) : json_null();
    json_t *document =
        json_pack("{s:s,s:s,s:i,s:s,s:[{s:i,s:o,s:o}]}", "id", "chatcmpl-fake", "object",
                  "chat.completion.chunk", "created", 1700000000, "model", options.model, "choices",
                  "index", 0, "delta", delta, "finish_reason", reason_json);
    char *text = json_dumps(document, JSON_COMPACT);
    add_event(bytes, text);
    free(text);
    json_decref(document);
}

static size_t piece_length(const char *text)
{
    size_t length = strnlen(text, (size_t)options.piece);
    while (((unsigned char)text[length] & 0xc0) == 0x80) /* not inside a UTF-8 character */
        length++;
    return length;
}

static void stream_head(struct bytes *bytes)
{
    bytes_addf(bytes, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n");
}

struct bytes *stream_answer(const char *text, const char *finish_reason, bool with_usage,
                            bool with_end)
{
    struct bytes *bytes = bytes_new();
    const char *whole = text;
    stream_head(bytes);
    add_delta(bytes, json_pack("{s:s,s:s}", "role", "assistant", "content", ""), NULL);
    for (size_t length; *text != '\0'; text += length) {
        length = piece_length(text);
        add_delta(bytes, json_pack("{s:s%}", "content", text, length), NULL);
    }
    if (with_end) {
        add_delta(bytes, json_object(), finish_reason);
        if (with_usage) {
            json_t *document = json_pack("{s:s,s:s,s:[],s:o}", "id", "chatcmpl-fake", "object",
                                         "chat.completion.chunk", "choices", "usage", usage(whole));
            char *last = json_dumps(document, JSON_COMPACT);
            add_event(bytes, last);
            free(last);
            json_decref(document);
        }
        add_event(bytes, "[DONE]");
    }
    bytes_addf(bytes, "0\r\n\r\n");
    return bytes;
}

struct response good_answer(const struct chat *chat)
{
    struct answer *answer = &answers[chat->answer % answer_count];
    struct bytes **bytes = chat->stream ? &answer->stream[chat->usage] : &answer->plain;
    if (*bytes == NULL)
        *bytes = chat->stream ? stream_answer(answer->text, "stop", chat->usage, true)
                              : plain_answer(answer->text, "stop");
    (*bytes)->users++;
    return (struct response){.bytes = *bytes, .rate = options.rate};
}

static int plain_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void read_answers(const char *folder)
{
    struct dirent **names;
    int count = scandir(folder, &names, plain_file, alphasort);
    if (count < 1 || count > ANSWERS_MOST) {
        fprintf(stderr, "fake_provider: no answers, or too many, in %s\n", folder);
        exit(2);
    }
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        answers[answer_count].text = bytes_read_file(path);
        answer_count += answers[answer_count].text != NULL;
        free(names[i]);
    }
    free(names);
}

void answers_init(const struct options *given)
{
    options = *given;
    if (options.answers != NULL) {
        read_answers(options.answers);
        return;
    }
    char *text = malloc((size_t)options.size + 1);
    if (text == NULL)
        abort();
    for (long i = 0; i < options.size; i++)
        text[i] = (char)(i % 64 == 63 ? '\n' : 'a' + i % 26);
    text[options.size] = '\0';
    answers[answer_count++].text = text;
}

const char *answers_text(const struct chat *chat)
{
    return answers[chat->answer % answer_count].text;
}
