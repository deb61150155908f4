/* OpenAI chat completions, and whatever else speaks them: vLLM, Ollama, llama.cpp, OpenRouter,
 * DeepSeek, gateways. https://platform.openai.com/docs/api-reference/chat
 *
 * A streamed answer is server-sent events whose data are chunk objects, then "[DONE]". Some
 * gateways ignore `stream` and send one object; both are read, told apart by the first byte. */
#include "agents/providers/codec.h"
#include "agents/providers/sse.h"
#include "agents/providers/text.h"
#include "base/json.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { ANSWER_BYTES_MAX = 16 << 20 };

struct codec_state {
    struct arena *arena;
    struct sse sse;
    struct buf text, whole; /* whole: an answer that is not streamed */
    bool begun, streamed, done, refused;
    int64_t prompt_tokens, completion_tokens;
    const char *finish, *model;
    enum fault fault;
};

/* Which faults an error's `type` or `code` names; the first that is contained wins. */
static const struct {
    const char *word;
    enum fault fault;
} error_words[] = {
    {"insufficient_quota", FAULT_QUOTA},
    {"billing", FAULT_QUOTA},
    {"spend_limit", FAULT_QUOTA},
    {"context_length_exceeded", FAULT_TOO_LONG},
    {"string_above_max_length", FAULT_TOO_LONG},
    {"rate_limit", FAULT_LIMITED},
    {"tokens_per_min", FAULT_LIMITED},
    {"overloaded", FAULT_RETRY},
    {"server_error", FAULT_RETRY},
    {"api_error", FAULT_RETRY},
    {"timeout", FAULT_RETRY},
    {"invalid_api_key", FAULT_KEY},
    {"authentication", FAULT_KEY},
    {"permission", FAULT_KEY},
    {"model_not_found", FAULT_MODEL},
    {"content_filter", FAULT_REFUSED},
    {"content_policy", FAULT_REFUSED},
};

static bool fault_by_word(const char *word, enum fault *fault)
{
    for (size_t i = 0; i < sizeof error_words / sizeof *error_words; i++) {
        if (strstr(word, error_words[i].word) == NULL)
            continue;
        *fault = error_words[i].fault;
        return true;
    }
    return false;
}

static enum fault fault_by_status(int64_t status)
{
    switch (status) {
    case 401:
    case 403:
        return FAULT_KEY;
    case 402:
        return FAULT_QUOTA;
    case 404:
        return FAULT_MODEL;
    case 408:
    case 409:
        return FAULT_RETRY;
    case 413:
        return FAULT_TOO_LONG;
    case 429:
        return FAULT_LIMITED;
    default:
        return status >= 500 && status <= 599 ? FAULT_RETRY : FAULT_FATAL;
    }
}

/* The class of an error object {"message", "type", "code"}; `status` 0 where none is known. */
static enum fault fault_of(const struct value *error, int64_t status)
{
    const struct value *code = value_get(error, "code");
    enum fault fault;
    bool plain = status == 0 || status == 400 || status == 429;
    if (plain && code != NULL && code->kind == VALUE_TEXT && fault_by_word(code->text, &fault))
        return fault;
    if (plain && fault_by_word(value_text(error, "type", ""), &fault))
        return fault;
    if (status == 0 && code != NULL && code->kind == VALUE_INT)
        return fault_by_status(code->integer);
    return status == 0 ? FAULT_RETRY : fault_by_status(status);
}

static bool is_openai(const char *base_url)
{
    return strncmp(base_url, "https://api.openai.com", 22) == 0;
}

static void encode(struct arena *arena, const struct completion_request *request,
                   const char *base_url, const char *key, const char **url,
                   const char *const **headers, struct buf *body)
{
    size_t length = strlen(base_url);
    while (length > 0 && base_url[length - 1] == '/')
        length--;
    *url = arena_printf(arena, "%.*s/chat/completions", (int)length, base_url);
    const char **lines = arena_array(arena, 5, sizeof *lines);
    size_t count = 0;
    lines[count++] = "content-type: application/json";
    lines[count++] = "accept: text/event-stream";
    if (key != NULL && *key != '\0')
        lines[count++] = arena_printf(arena, "authorization: Bearer %s", key);
    *headers = lines;

    struct json json;
    json_init(&json, body);
    json_object(&json);
    json_put_text(&json, "model", request->model);
    json_key(&json, "messages");
    json_array(&json);
    if (request->system != NULL && *request->system != '\0') {
        json_object(&json);
        json_put_text(&json, "role", "system");
        json_put_text(&json, "content", request->system);
        json_object_end(&json);
    }
    json_object(&json);
    json_put_text(&json, "role", "user");
    json_put_text(&json, "content", request->prompt);
    json_object_end(&json);
    json_array_end(&json);
    if (request->temperature >= 0)
        json_put_real(&json, "temperature", request->temperature);
    /* OpenAI's own newer models refuse the old name; other servers do not know the new one. */
    if (request->max_tokens > 0)
        json_put_int(&json, is_openai(base_url) ? "max_completion_tokens" : "max_tokens",
                     request->max_tokens);
    if (request->json) {
        json_key(&json, "response_format");
        json_raw(&json, "{\"type\":\"json_object\"}");
    }
    json_put_bool(&json, "stream", true);
    json_key(&json, "stream_options");
    json_raw(&json, "{\"include_usage\":true}");
    json_object_end(&json);
}

static void read_usage(struct codec_state *state, const struct value *usage)
{
    if (usage == NULL || usage->kind != VALUE_MAP)
        return;
    int64_t prompt = value_int(usage, "prompt_tokens", -1);
    int64_t completion = value_int(usage, "completion_tokens", -1);
    state->prompt_tokens = prompt >= 0 ? prompt : -1;
    state->completion_tokens = completion >= 0 ? completion : -1;
}

static void read_choice(struct codec_state *state, const struct value *choice)
{
    const struct value *message = value_get(choice, "delta");
    if (message == NULL)
        message = value_get(choice, "message");
    buf_add_text(&state->text, value_text(message, "content", ""));
    if (*value_text(message, "refusal", "") != '\0')
        state->refused = true;
    const char *finish = value_text(choice, "finish_reason", NULL);
    if (finish != NULL)
        state->finish = arena_strdup(state->arena, finish);
}

/* One chunk, or the whole answer: the same object but for delta/message. */
static int read_object(struct codec_state *state, const char *bytes, size_t length, struct err *err)
{
    struct buf clean;
    buf_init(&clean, ANSWER_BYTES_MAX * 3);
    text_clean_json(bytes, length, &clean);
    struct arena *arena = arena_new();
    struct value *root;
    int status = value_parse_json(arena, "answer", buf_text(&clean), clean.length, &root, err);
    if (status == 0 && root->kind != VALUE_MAP)
        status = err_set(err, ERR_PROTOCOL, "expected a JSON object");
    if (status != 0) {
        if (err != NULL)
            err->code = ERR_PROTOCOL;
        goto out;
    }
    const struct value *error = value_get(root, "error");
    if (error != NULL && error->kind != VALUE_NULL) {
        state->fault = fault_of(error, 0);
        const char *message =
            error->kind == VALUE_TEXT ? error->text : value_text(error, "message", "an error");
        status = err_set(err, ERR_PROTOCOL, "the provider says: %.200s", message);
        goto out;
    }
    const char *model = value_text(root, "model", NULL);
    if (model != NULL && *state->model == '\0')
        state->model = arena_strdup(state->arena, model);
    read_usage(state, value_get(root, "usage"));
    const struct value *choices = value_get(root, "choices");
    if (choices != NULL && choices->kind == VALUE_LIST && choices->count > 0)
        read_choice(state, choices->items[0]);
    if (state->text.dropped > 0)
        status = err_set(err, ERR_LIMIT, "the answer is longer than %d bytes", ANSWER_BYTES_MAX);
out:
    arena_free(arena);
    buf_free(&clean);
    return status;
}

static int on_event(void *context, const char *event, const char *data, size_t length,
                    struct err *err)
{
    struct codec_state *state = context;
    (void)event;
    while (length > 0 && isspace((unsigned char)data[length - 1]))
        length--;
    if (state->done || length == 0)
        return 0;
    if (length == 6 && memcmp(data, "[DONE]", 6) == 0) {
        state->done = true;
        return 0;
    }
    return read_object(state, data, length, err);
}

static struct codec_state *begin(struct arena *arena)
{
    struct codec_state *state = ARENA_NEW(arena, struct codec_state);
    state->arena = arena;
    state->prompt_tokens = state->completion_tokens = -1;
    state->model = "";
    buf_init(&state->text, ANSWER_BYTES_MAX);
    buf_init(&state->whole, ANSWER_BYTES_MAX);
    sse_init(&state->sse, on_event, state);
    return state;
}

static int feed(struct codec_state *state, const char *bytes, size_t length, struct err *err)
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
            return err_set(err, ERR_PROTOCOL, "the answer is HTML; is the base URL right?");
        }
        state->streamed = *bytes != '{';
    }
    if (state->streamed)
        return sse_feed(&state->sse, bytes, length, err);
    buf_add(&state->whole, bytes, length);
    if (state->whole.dropped > 0)
        return err_set(err, ERR_LIMIT, "the answer is longer than %d bytes", ANSWER_BYTES_MAX);
    return 0;
}

static const char *finish_name(const struct codec_state *state)
{
    if (state->refused || (state->finish != NULL && strcmp(state->finish, "content_filter") == 0))
        return "refused";
    return state->finish != NULL ? state->finish : "stop";
}

static int finish(struct codec_state *state, struct completion *completion, enum fault *fault,
                  struct err *err)
{
    int status = 0;
    if (!state->streamed && state->begun && state->fault == FAULT_NONE)
        status = read_object(state, buf_text(&state->whole), state->whole.length, err);
    *completion = (struct completion){
        .text = arena_strndup(state->arena, buf_text(&state->text), state->text.length),
        .prompt_tokens = state->prompt_tokens,
        .completion_tokens = state->completion_tokens,
        .finish = finish_name(state),
        .model = state->model};
    *fault = state->fault;
    bool terminal = state->done || state->finish != NULL || (!state->streamed && state->begun);
    bool cut = strcmp(completion->finish, "length") == 0;
    if (state->fault != FAULT_NONE) {
        if (status == 0)
            status = err_set(err, ERR_PROTOCOL, "the provider sent an error");
    } else if (status == 0 && !terminal) {
        status = err_set(err, ERR_PROTOCOL, "the stream ended before the answer did");
    } else if (status == 0 && strcmp(completion->finish, "refused") == 0) {
        *fault = FAULT_REFUSED;
        status = err_set(err, ERR_PROTOCOL, "the provider refused to answer");
    } else if (status == 0 && *completion->text == '\0' && !cut) {
        status = err_set(err, ERR_PROTOCOL, "the answer is empty");
    }
    if (status != 0 && *fault == FAULT_NONE)
        *fault = FAULT_RETRY;
    sse_free(&state->sse);
    buf_free(&state->text);
    buf_free(&state->whole);
    return status;
}

static enum fault classify(int status, const char *body, size_t length, struct buf *reason)
{
    enum fault fault = fault_by_status(status);
    struct buf clean;
    buf_init(&clean, ANSWER_BYTES_MAX);
    text_clean_json(body, length, &clean);
    struct arena *arena = arena_new();
    struct value *root;
    struct err ignored;
    buf_addf(reason, "HTTP %d", status);
    /* The message of 401 and 403 quotes the key, so it is not repeated. */
    if (value_parse_json(arena, "error", buf_text(&clean), clean.length, &root, &ignored) == 0) {
        const struct value *error = value_get(root, "error");
        if (error == NULL)
            error = root;
        fault = fault_of(error, status);
        const char *message =
            error->kind == VALUE_TEXT ? error->text : value_text(error, "message", "");
        if (fault != FAULT_KEY && *message != '\0')
            buf_addf(reason, ": %.300s", message);
    }
    arena_free(arena);
    buf_free(&clean);
    return fault;
}

const struct codec codec_openai = {.name = "openai",
                                   .default_url = "https://api.openai.com/v1",
                                   .key_variable = "OPENAI_API_KEY",
                                   .encode = encode,
                                   .begin = begin,
                                   .feed = feed,
                                   .finish = finish,
                                   .classify = classify};
