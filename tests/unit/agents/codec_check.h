/* What the tests of all three formats share: answers fed however a network may cut them, errors
 * classified, requests read back. */
#pragma once

#include "check.h"

#include "agents/llm/providers/answer.h"
#include "agents/llm/providers/fault.h"
#include "base/value.h"

#define BAD "\xEF\xBF\xBD" /* U+FFFD */

struct answer_row {
    const char *what, *stream, *text, *finish; /* text NULL: no answer */
    int64_t prompt, completion;
    enum fault fault;
};

struct outcome {
    struct completion completion;
    enum fault fault;
    char reason[480];
};

/* Feeds `length` bytes in pieces and ends; texts in the arena. */
static struct outcome outcome_of(struct arena *arena, const struct codec *codec, const char *bytes,
                                 size_t length, size_t piece)
{
    struct outcome outcome = {.fault = FAULT_NONE};
    struct err err = {0}, ended = {0};
    struct codec_state *state = answer_begin(arena, codec);
    int status = 0;
    for (size_t at = 0; at < length && status == 0; at += piece)
        status = answer_feed(state, bytes + at, length - at < piece ? length - at : piece, &err);
    int finished = answer_finish(state, &outcome.completion, &outcome.fault, &ended);
    assert_int_equal(outcome.fault == FAULT_NONE, finished == 0);
    snprintf(outcome.reason, sizeof outcome.reason, "%s",
             status != 0 ? err.message : ended.message);
    if (status != 0 && outcome.fault == FAULT_NONE)
        outcome.fault = FAULT_RETRY; /* as the engine does */
    assert_non_null(outcome.completion.text);
    assert_non_null(outcome.completion.finish);
    if (outcome.fault != FAULT_NONE)
        assert_true(outcome.reason[0] != '\0' && strchr(outcome.reason, '\n') == NULL);
    return outcome;
}

static void check_outcome(const struct codec *codec, const struct answer_row *row,
                          const char *stream, size_t piece)
{
    struct arena *arena = arena_new();
    struct outcome outcome = outcome_of(arena, codec, stream, strlen(stream), piece);
    if (outcome.fault != row->fault)
        fail_msg("%s: %s in pieces of %zu: fault %d, not %d (%s)", codec->name, row->what, piece,
                 (int)outcome.fault, (int)row->fault, outcome.reason);
    if (row->text != NULL && (strcmp(outcome.completion.text, row->text) != 0 ||
                              strcmp(outcome.completion.finish, row->finish) != 0 ||
                              outcome.completion.prompt_tokens != row->prompt ||
                              outcome.completion.completion_tokens != row->completion))
        fail_msg("%s: %s in pieces of %zu: \"%s\" %s, %lld and %lld tokens", codec->name, row->what,
                 piece, outcome.completion.text, outcome.completion.finish,
                 (long long)outcome.completion.prompt_tokens,
                 (long long)outcome.completion.completion_tokens);
    arena_free(arena);
}

static char *with_line_ends(struct arena *arena, const char *stream, const char *end)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    for (; *stream != '\0'; stream++)
        if (*stream == '\n')
            buf_add_text(&out, end);
        else
            buf_add_char(&out, *stream);
    char *text = arena_strdup(arena, buf_text(&out));
    buf_free(&out);
    return text;
}

/* Every row with every line end, a byte at a time and in larger pieces. */
static void check_answers(const struct codec *codec, const struct answer_row *rows, size_t count)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    static const size_t pieces[] = {1, 2, 3, 7, 64, 1 << 20};
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < COUNT(ends); j++) {
            struct arena *arena = arena_new();
            const char *stream = with_line_ends(arena, rows[i].stream, ends[j]);
            for (size_t k = 0; k < COUNT(pieces); k++)
                check_outcome(codec, &rows[i], stream, pieces[k]);
            arena_free(arena);
        }
}

/* Signs of life say nothing, whatever says it does: what the limit on silence goes by. */
static void check_heard(const struct codec *codec, const char *life, const char *word)
{
    struct arena *arena = arena_new();
    struct codec_state *state = answer_begin(arena, codec);
    struct completion completion;
    enum fault fault;
    struct err err;
    for (int i = 0; i < 3; i++)
        assert_int_equal(answer_feed(state, life, strlen(life), &err), 0);
    assert_int_equal(answer_heard(state), 0);
    assert_int_equal(answer_feed(state, word, strlen(word), &err), 0);
    assert_true(answer_heard(state) > 0);
    assert_int_equal(answer_finish(state, &completion, &fault, &err), -1);
    arena_free(arena);
}

/* A recorded stream, cut at every byte: until `terminal` has arrived whole it is asked for again,
 * from then on it is the answer. */
static void check_cuts(const struct codec *codec, const char *stream, const char *terminal,
                       const char *text)
{
    size_t length = strlen(stream);
    const char *at = strstr(stream, terminal);
    assert_non_null(at);
    const char *blank = strstr(at, "\n\n");
    size_t whole = blank != NULL ? (size_t)(blank - stream) + 2 : length;
    for (size_t cut = 0; cut <= length; cut++) {
        struct arena *arena = arena_new();
        struct outcome outcome = outcome_of(arena, codec, stream, cut, 1 << 20);
        enum fault expected = cut < whole ? FAULT_RETRY : FAULT_NONE;
        if (outcome.fault != expected)
            fail_msg("%s: cut after %zu of %zu bytes: fault %d, not %d", codec->name, cut, length,
                     (int)outcome.fault, (int)expected);
        if (expected == FAULT_NONE)
            assert_string_equal(outcome.completion.text, text);
        arena_free(arena);
    }
}

struct error_row {
    int status;
    const char *body;
    enum fault fault;
    const char *word; /* must stand in the reason, or NULL */
};

static void check_errors(const struct codec *codec, const struct error_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct buf reason;
        buf_init(&reason, 479);
        enum fault fault =
            fault_classify(rows[i].status, rows[i].body, strlen(rows[i].body), &reason);
        if (fault != rows[i].fault)
            fail_msg("%s: row %zu, status %d: fault %d, not %d", codec->name, i, rows[i].status,
                     (int)fault, (int)rows[i].fault);
        if (rows[i].word != NULL && strstr(buf_text(&reason), rows[i].word) == NULL)
            fail_msg("%s: row %zu: no \"%s\" in \"%s\"", codec->name, i, rows[i].word,
                     buf_text(&reason));
        assert_null(strstr(buf_text(&reason), "sk-secret"));
        assert_null(strchr(buf_text(&reason), '\n'));
        buf_free(&reason);
    }
}

/* What every format answers alike, by status alone. */
static void check_statuses(const struct codec *codec)
{
    static const struct error_row rows[] = {{302, "", FAULT_FATAL, "302"},
                                            {400, "", FAULT_FATAL, "400"},
                                            {401, "", FAULT_KEY, "401"},
                                            {402, "", FAULT_QUOTA, "402"},
                                            {403, "{}", FAULT_KEY, NULL},
                                            {404, "", FAULT_MODEL, NULL},
                                            {408, "", FAULT_RETRY, NULL},
                                            {409, "", FAULT_RETRY, NULL},
                                            {413, "", FAULT_TOO_LONG, NULL},
                                            {418, "[1]", FAULT_FATAL, NULL},
                                            {422, "[]", FAULT_FATAL, NULL},
                                            {429, "not json", FAULT_LIMITED, "429"},
                                            {500, "<html>", FAULT_RETRY, NULL},
                                            {502, "null", FAULT_RETRY, NULL},
                                            {503, "\xFF{", FAULT_RETRY, NULL},
                                            {504, "\"\"", FAULT_RETRY, NULL},
                                            {529, "{\"error\":", FAULT_RETRY, "529"}};
    check_errors(codec, rows, COUNT(rows));
}

struct sent {
    const char *url, *body;
    const struct value *root;
    const char *const *headers;
};

static bool has_header(const struct sent *sent, const char *line)
{
    for (size_t i = 0; sent->headers[i] != NULL; i++)
        if (strcmp(sent->headers[i], line) == 0)
            return true;
    return false;
}

static bool key_leaks(const struct sent *sent)
{
    return strstr(sent->url, "sk-secret") != NULL ||
           (sent->body != NULL && strstr(sent->body, "sk-secret") != NULL);
}

static struct sent sent_by(struct arena *arena, const struct codec *codec,
                           const struct completion_request *request, const char *base_url)
{
    struct sent sent;
    struct buf body;
    struct value *root;
    struct err err;
    buf_init(&body, 100000);
    codec->encode(arena, request, base_url, "sk-secret", &sent.url, &sent.headers, &body);
    if (value_parse_json(arena, "body", buf_text(&body), body.length, &root, &err) != 0)
        fail_msg("%s: %s", err.message, buf_text(&body));
    sent.root = root;
    sent.body = arena_strdup(arena, buf_text(&body));
    buf_free(&body);
    assert_false(key_leaks(&sent));
    return sent;
}

static struct sent described_by(struct arena *arena, const struct codec *codec, const char *model,
                                const char *base_url, const char *key)
{
    struct sent sent = {0};
    codec->describe(arena, model, base_url, key, &sent.url, &sent.headers);
    assert_false(key_leaks(&sent));
    return sent;
}
