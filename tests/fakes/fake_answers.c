/* fake_provider: whole and streamed answers of every format. An answer's text is the next file of
 * the folder, by name, over and over; or a function of the request's text (fake_content.c); or made
 * up. Good answers by order are built once and shared, so that a thousand streams cost little. */
#include "fake_provider.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS_MOST = 1024 };

struct stored {
    char *text;
    struct bytes *built[FORMATS * 4]; /* by format, stream, usage; when first asked for */
    long prompt_tokens;               /* of all that are built */
};

struct events {
    struct bytes *bytes;
    const struct answer *answer;
    int count;
};

const struct format *const formats[FORMATS] = {&format_openai, &format_anthropic, &format_gemini,
                                               &format_responses};

static struct options options;
static struct stored answers[ANSWERS_MOST];
static size_t answer_count;
static long latency_low, latency_high;
static char current_key[1024];

void answers_key(const char *key)
{
    snprintf(current_key, sizeof current_key, "%s", key);
}

/* --- JSON, and what JSON libraries refuse to write --- */

static void add_replaced(struct bytes *out, const char *text)
{
    const struct {
        const char *mark, *bytes;
    } marks[] = {{"@KEY@", current_key},
                 {"@NUL@", "\\u0000"},
                 {"@LONE@", "\\ud83d"},
                 {"@BAD@", "\xff\xfe\xc3"}};
    while (*text != '\0') {
        size_t plain = 1;
        for (size_t i = 0; i < sizeof marks / sizeof *marks && *text == '@'; i++) {
            if (strncmp(text, marks[i].mark, strlen(marks[i].mark)) != 0)
                continue;
            bytes_add(out, marks[i].bytes, strlen(marks[i].bytes));
            text += strlen(marks[i].mark);
            plain = 0;
            break;
        }
        if (plain > 0) {
            plain += strcspn(text + 1, "@");
            bytes_add(out, text, plain);
            text += plain;
        }
    }
    bytes_add(out, "", 1);
    out->length--;
}

/* Takes the document. */
static struct bytes *dump(json_t *document, size_t flags)
{
    struct bytes *out = bytes_new();
    char *text = json_dumps(document, flags);
    add_replaced(out, text);
    free(text);
    json_decref(document);
    return out;
}

const struct error_row *error_find(const struct error_row *rows, size_t count, long code,
                                   const char *kind)
{
    bool by_kind = kind != NULL && kind[0] != '\0' && strncmp(kind, "delay_", 6) != 0;
    for (size_t i = 0; i < count; i++) {
        if (by_kind ? rows[i].kind != NULL && strcmp(rows[i].kind, kind) == 0
                    : rows[i].kind == NULL && rows[i].code == code)
            return &rows[i];
    }
    return &rows[count - (code >= 500 ? 2 : 1)];
}

void usage_tokens(const struct answer *answer, json_int_t *prompt, json_int_t *completion)
{
    *prompt = answer->prompt_tokens;
    *completion = (json_int_t)(strlen(answer->text) / 4 + 1);
    if (answer->usage == USAGE_WRONG) /* nothing at all, for an answer that is there */
        *prompt = *completion = 0;
    if (answer->usage == USAGE_NEGATIVE)
        *completion = -*completion;
    if (answer->usage == USAGE_ONE)
        *completion = 1;
    if (answer->usage == USAGE_CUT) /* it read no more of the prompt */
        *prompt = 256;
    if (answer->usage == USAGE_HUGE)
        *completion = 4000000000000;
}

/* --- pages --- */

struct bytes *page(long code, const char *type, const char *extra, const char *body, size_t length)
{
    struct bytes *bytes = bytes_new();
    bytes_addf(bytes, "HTTP/1.1 %ld %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n", code,
               code == 200 ? "OK" : "Fault", type, length, extra);
    bytes_add(bytes, body, length);
    return bytes;
}

struct response json_page(long code, const char *extra, json_t *document)
{
    struct bytes *text = dump(document, JSON_COMPACT);
    struct response response = {
        .bytes = page(code, "application/json", extra, text->data, text->length)};
    bytes_release(text);
    return response;
}

/* --- streams: each event is a chunk of the transfer coding, so that any run of the bytes may be
 * sent at a time --- */

struct bytes *stream_head(void)
{
    struct bytes *bytes = bytes_new();
    bytes_addf(bytes, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n");
    return bytes;
}

void event_add_raw(struct events *events, const char *name, const char *data)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    const struct answer *answer = events->answer;
    const char *end = ends[answer->line_end];
    struct bytes *text = bytes_new();
    events->count++;
    if (answer->comments && events->count == 1)
        bytes_addf(text, "\xef\xbb\xbf");
    if (answer->comments)
        bytes_addf(text, ": still here%sid: %d%sretry: 3000%snonsense%s%s: %s%s%s", end,
                   events->count, end, end, end, end, end, end, end);
    if (name != NULL)
        bytes_addf(text, "event: %s%s", name, end);
    for (const char *line = data;;) {
        size_t length = strcspn(line, "\n");
        size_t sent = events->count == answer->garbled ? length / 2 : length;
        bytes_addf(text, "data:%s%.*s%s", answer->comments ? "" : " ", (int)sent, line, end);
        if (line[length] == '\0')
            break;
        line += length + 1;
    }
    bytes_addf(text, "%s", end);
    bytes_addf(events->bytes, "%zx\r\n", text->length);
    bytes_add(events->bytes, text->data, text->length);
    bytes_addf(events->bytes, "\r\n");
    bytes_release(text);
}

void event_add(struct events *events, const char *name, json_t *data)
{
    struct bytes *text = dump(data, events->answer->split ? JSON_INDENT(1) : JSON_COMPACT);
    event_add_raw(events, name, text->data);
    bytes_release(text);
}

bool event_piece(const struct answer *answer, const char **text, const char **piece, size_t *length)
{
    if (**text == '\0')
        return false;
    *piece = *text;
    *length = answer->whole ? strlen(*text) : strnlen(*text, (size_t)options.piece);
    while (((unsigned char)(*text)[*length] & 0xc0) == 0x80) /* not inside a UTF-8 character */
        ++*length;
    *text += *length;
    return true;
}

/* At most 100, so that the answers to long prompts can be shared. */
static long prompt_tokens(const struct chat *chat)
{
    size_t length = strlen(chat->text);
    return length < 400 ? (long)length / 4 + 1 : 100;
}

static struct bytes *build(const struct chat *chat, const struct answer *given)
{
    struct answer answer = *given;
    answer.as_tool = chat->as_tool;
    answer.prompt_tokens = prompt_tokens(chat);
    if (chat->stream) {
        struct events events = {.bytes = stream_head(), .answer = &answer};
        chat->format->stream(&events, &answer, chat->usage);
        bytes_addf(events.bytes, "0\r\n\r\n");
        return events.bytes;
    }
    struct bytes *text = dump(answer.error != 0 ? chat->format->error(answer.error, answer.kind)
                                                : chat->format->plain(&answer),
                              JSON_COMPACT);
    if (answer.no_end || answer.garbled > 0)
        text->length /= 2;
    struct bytes *bytes = page(200, "application/json", "", text->data, text->length);
    bytes_release(text);
    return bytes;
}

struct response answer_build(const struct chat *chat, const struct answer *answer)
{
    return (struct response){.bytes = build(chat, answer), .rate = options.rate};
}

/* --- which text --- */

char *answer_text(const struct chat *chat)
{
    if (chat->format == &format_embeddings)
        return strdup(chat->text);
    if (options.by_content != NULL)
        return content_answer(chat->text);
    return strdup(answers[chat->answer % answer_count].text);
}

struct response answer_good(const struct chat *chat)
{
    struct response response = {.rate = options.rate};
    if (latency_high > 0)
        response.delay_ms =
            latency_low + (long)(chat->hash % (uint64_t)(latency_high - latency_low + 1));
    if (options.by_content != NULL || chat->as_tool) {
        struct answer answer = {.text = answer_text(chat)};
        response.bytes = build(chat, &answer);
        free((char *)(uintptr_t)answer.text);
        return response;
    }
    struct stored *stored = &answers[chat->answer % answer_count];
    size_t format = 0;
    if (stored->prompt_tokens != prompt_tokens(chat)) {
        for (size_t i = 0; i < FORMATS * 4; i++) {
            bytes_release(stored->built[i]);
            stored->built[i] = NULL;
        }
        stored->prompt_tokens = prompt_tokens(chat);
    }
    while (formats[format] != chat->format)
        format++;
    struct bytes **bytes = &stored->built[format * 4 + chat->stream * 2u + chat->usage];
    if (*bytes == NULL)
        *bytes = build(chat, &(struct answer){.text = stored->text});
    (*bytes)->users++;
    response.bytes = *bytes;
    return response;
}

/* --- start --- */

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
    if (options.piece < 1)
        options.piece = 1;
    if (options.latency != NULL &&
        (sscanf(options.latency, "%ld-%ld", &latency_low, &latency_high) != 2 || latency_low < 0 ||
         latency_high < latency_low)) {
        fprintf(stderr, "fake_provider: --latency-ms LOW-HIGH\n");
        exit(2);
    }
    content_init(&options);
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
