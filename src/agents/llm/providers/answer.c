#include "agents/llm/providers/answer.h"

#include "agents/llm/providers/fault.h"
#include "agents/llm/providers/text.h"

#include <ctype.h>
#include <string.h>

enum { ANSWER_BYTES_MAX = 16 << 20 };

void answer_fail(struct codec_state *state, const struct value *error)
{
    if (state->fault != FAULT_NONE)
        return;
    state->fault = fault_of_error(error, 0);
    BUF_LOCAL(reason, sizeof state->error.message / 2);
    fault_add_text(&reason, state->fault == FAULT_KEY ? "the key is refused"
                            : *fault_message(error)   ? fault_message(error)
                                                      : "an error without words");
    (void)err_set(&state->error, ERR_PROTOCOL, "the provider says: %s", buf_text(&reason));
}

void answer_set_model(struct codec_state *state, const char *name)
{
    if (name != NULL && *state->model == '\0')
        state->model = arena_strdup(state->arena, name);
}

void answer_set_finish(struct codec_state *state, const char *reason)
{
    state->finish = arena_strdup(state->arena, reason);
}

int64_t answer_count(const struct value *usage, const char *key)
{
    int64_t count = value_int(usage, key, -1);
    return count >= 0 ? count : -1;
}

void answer_cache(struct codec_state *state, int64_t cached, int64_t written)
{
    if (cached > state->cached_tokens)
        state->cached_tokens = cached;
    if (written > state->written_tokens)
        state->written_tokens = written;
}

int64_t answer_sum(int64_t a, int64_t b)
{
    int64_t sum;
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

static void read_one(struct codec_state *state, const struct value *object)
{
    const struct value *error = value_get(object, "error");
    /* Some gateways say "error": null or "" beside each good chunk. */
    if (error != NULL && (error->kind == VALUE_MAP || error->length > 0))
        answer_fail(state, error);
    else
        state->codec->read(state, object);
}

static int read_document(struct codec_state *state, const char *bytes, size_t length,
                         struct err *err)
{
    BUF_LOCAL(clean, (size_t)ANSWER_BYTES_MAX * 3);
    text_clean_json(bytes, length, &clean);
    ARENA_LOCAL(arena);
    struct value *root;
    int status = value_parse_json(arena, "answer", buf_text(&clean), clean.length, &root, err);
    if (status != 0) {
        BUF_LOCAL(numbers, (size_t)ANSWER_BYTES_MAX * 3);
        text_clean_numbers(buf_text(&clean), clean.length, &numbers);
        status = value_parse_json(arena, "answer", buf_text(&numbers), numbers.length, &root, err);
    }
    if (status != 0)
        err->code = ERR_PROTOCOL;
    else if (root->kind == VALUE_MAP)
        read_one(state, root);
    else if (root->kind == VALUE_LIST && !state->streamed)
        for (size_t i = 0; i < root->count; i++)
            read_one(state, root->items[i]);
    else
        status = err_set(err, ERR_PROTOCOL, "expected a JSON object");
    if (status == 0 && state->fault != FAULT_NONE) {
        *err = state->error;
        status = -1;
    }
    if (status == 0 && state->text.dropped > 0)
        status = err_set(err, ERR_LIMIT, "the answer is longer than %d bytes", ANSWER_BYTES_MAX);
    return status;
}

/* Is it all that the pattern's event does, to append its words? The state it is tried on has
 * nothing that an event could say, so that whatever else one says is seen. */
static bool only_appends(const struct codec_state *state)
{
    static const char words[] = "words", finish[] = "none";
    struct arena *arena = arena_new();
    struct codec_state trial = {.arena = arena,
                                .codec = state->codec,
                                .streamed = true,
                                .prompt_tokens = INT64_MIN,
                                .completion_tokens = INT64_MIN,
                                .finish = finish,
                                .model = state->model};
    struct err ignored;
    BUF_LOCAL(event, SSE_EVENT_BYTES_MAX);
    buf_init(&trial.text, ANSWER_BYTES_MAX);
    plain_fill(&state->plain, words, &event);
    bool only = read_document(&trial, buf_text(&event), event.length, &ignored) == 0 &&
                strcmp(buf_text(&trial.text), words) == 0 && trial.finish == finish &&
                trial.model == state->model && trial.prompt_tokens == INT64_MIN &&
                trial.completion_tokens == INT64_MIN && trial.cached_tokens == 0 &&
                trial.written_tokens == 0 && !trial.refused && !trial.done;
    buf_free(&trial.text);
    arena_free(arena);
    return only;
}

static int read_event(struct codec_state *state, const char *data, size_t length, struct err *err)
{
    size_t before = state->text.length;
    if (!state->by_tree && plain_read(&state->plain, data, length, &state->text)) {
        if (state->text.dropped == 0)
            return 0;
        return err_set(err, ERR_LIMIT, "the answer is longer than %d bytes", ANSWER_BYTES_MAX);
    }
    int status = read_document(state, data, length, err);
    if (status == 0 && state->text.length > before && !state->by_tree &&
        plain_take(&state->plain, data, length))
        state->plain.proven = only_appends(state);
    return status;
}

static int on_event(void *context, const char *event, const char *data, size_t length,
                    struct err *err)
{
    struct codec_state *state = context;
    while (length > 0 && isspace((unsigned char)data[length - 1]))
        length--;
    if (state->done || length == 0)
        return 0;
    state->heard += strcmp(event, "ping") != 0; /* other names are said again inside the data */
    if (length == 6 && memcmp(data, "[DONE]", 6) == 0) {
        state->done = true;
        return 0;
    }
    return read_event(state, data, length, err);
}

struct codec_state *answer_begin(struct arena *arena, const struct codec *codec)
{
    struct codec_state *state = ARENA_NEW(arena, struct codec_state);
    state->arena = arena;
    state->codec = codec;
    state->prompt_tokens = state->completion_tokens = -1;
    state->model = "";
    buf_init(&state->text, ANSWER_BYTES_MAX);
    buf_init(&state->whole, ANSWER_BYTES_MAX);
    sse_init(&state->sse, on_event, state);
    return state;
}

int answer_feed(struct codec_state *state, const char *bytes, size_t length, struct err *err)
{
    while (!state->begun && length > 0 && isspace((unsigned char)*bytes)) {
        bytes++;
        length--;
    }
    if (length == 0)
        return 0;
    if (!state->begun) {
        state->begun = true;
        if (*bytes == '<') {
            state->fault = FAULT_FATAL;
            (void)err_set(&state->error, ERR_PROTOCOL,
                          "the answer is HTML; is the base URL right?");
        }
        state->streamed = *bytes != '{' && *bytes != '[';
    }
    if (state->fault != FAULT_NONE) {
        *err = state->error;
        return -1;
    }
    if (state->streamed)
        return sse_feed(&state->sse, bytes, length, err);
    buf_add(&state->whole, bytes, length);
    state->heard += length;
    if (state->whole.dropped > 0)
        return err_set(err, ERR_LIMIT, "the answer is longer than %d bytes", ANSWER_BYTES_MAX);
    return 0;
}

uint64_t answer_heard(const struct codec_state *state)
{
    return state->heard;
}

/* What came, judged as a whole; *fault and *err where it is no answer. */
static int judge(const struct codec_state *state, enum fault *fault, struct err *err)
{
    bool ended = state->done || state->finish != NULL || (!state->streamed && state->begun);
    bool cut = state->finish != NULL && strcmp(state->finish, "length") == 0;
    if (state->fault != FAULT_NONE) {
        *fault = state->fault;
        *err = state->error;
        return -1;
    }
    if (!ended) {
        *fault = FAULT_RETRY;
        return err_set(err, ERR_PROTOCOL, "the stream ended before the answer did");
    }
    if (state->refused) {
        *fault = FAULT_REFUSED;
        return err_set(err, ERR_PROTOCOL, "the provider refused to answer");
    }
    if (state->text.length == 0 && !cut) {
        *fault = FAULT_EMPTY;
        return err_set(err, ERR_PROTOCOL, "the answer is empty");
    }
    return 0;
}

int answer_finish(struct codec_state *state, struct completion *completion, enum fault *fault,
                  struct err *err)
{
    int status = 0;
    *fault = FAULT_NONE;
    if (!state->streamed && state->begun && state->fault == FAULT_NONE)
        status = read_document(state, buf_text(&state->whole), state->whole.length, err);
    if (status != 0)
        *fault = state->fault != FAULT_NONE ? state->fault : FAULT_RETRY;
    else
        status = judge(state, fault, err);
    const char *finish = state->finish != NULL ? state->finish : "stop";
    bool can_be = state->cached_tokens <= state->prompt_tokens &&
                  state->written_tokens <= state->prompt_tokens - state->cached_tokens;
    *completion = (struct completion){
        .text = arena_strndup(state->arena, buf_text(&state->text), state->text.length),
        .prompt_tokens = state->prompt_tokens,
        .completion_tokens = state->completion_tokens,
        .cached_tokens = can_be ? state->cached_tokens : 0,
        .written_tokens = can_be ? state->written_tokens : 0,
        .billed_micro = state->billed_micro,
        .finish = state->refused ? "refused" : finish,
        .model = state->model,
        .turn = state->turn};
    sse_free(&state->sse);
    plain_free(&state->plain);
    buf_free(&state->text);
    buf_free(&state->whole);
    return status;
}
