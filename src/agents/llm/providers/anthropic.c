/* Anthropic messages. https://platform.claude.com/docs/en/api/messages and .../streaming
 *
 *   message_start (message, usage of the prompt)
 *   { content_block_start, content_block_delta..., content_block_stop }...
 *   message_delta (stop_reason, usage so far), message_stop
 *
 * with "ping" and "error" anywhere. A block of type text or tool_use is answer, thinking is not. */
#include "agents/llm/providers/answer.h"
#include "agents/llm/providers/fault.h"
#include "agents/llm/providers/request.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

/* Room for thinking and a kernel; every model that is still served allows it. */
enum { MAX_TOKENS = 32000 };

#define OUTPUT_CONFIG "output_config"

/* Before Sonnet 4.5 and Opus 4.5 there was no output_config.format; there a forced tool, whose
 * input is the answer, holds the model to the schema. It cannot replace the new way: newer models
 * always think, and thinking does not go with a forced tool.
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs */
static const char *const old_models[] = {
    "claude-2",        "claude-3",           "claude-instant",    "claude-opus-4-0",
    "claude-opus-4-1", "claude-opus-4-2025", "claude-sonnet-4-0", "claude-sonnet-4-2025"};

static bool is_old(const char *model)
{
    for (size_t i = 0; i < sizeof old_models / sizeof *old_models; i++)
        if (strstr(model, old_models[i]) != NULL)
            return true;
    return false;
}

/* Opus 4.7 and later, and all of 5 and later, choose their sampling themselves, and answer 400 to
 * a temperature. "claude-opus-4-7", "claude-sonnet-5-5", "claude-fable-5-1-20261001". */
static bool samples_itself(const char *model)
{
    const char *family = strstr(model, "claude-");
    if (family == NULL)
        return false;
    family += strlen("claude-");
    const char *version = family + strspn(family, "abcdefghijklmnopqrstuvwxyz-");
    char *end;
    unsigned long major = strtoul(version, &end, 10);
    unsigned long minor = *end == '-' ? strtoul(end + 1, &end, 10) : 0;
    return version > family &&
           (major >= 5 || (major == 4 && minor >= 7 && minor < 100 /* no date */ &&
                           strncmp(family, "opus-", strlen("opus-")) == 0));
}

/* What the model's entry says of it (effort), and the form of the answer. */
static void put_output_config(struct json *json, const struct completion_request *request)
{
    bool formed = request->schema != NULL && !is_old(request->model);
    const struct value *own = value_get(request->body, OUTPUT_CONFIG);
    if (!formed && own == NULL)
        return;
    json_put_object(json, OUTPUT_CONFIG);
    for (size_t i = 0; own != NULL && i < own->count; i++)
        if (!formed || strcmp(own->keys[i], "format") != 0)
            json_put_value(json, own->keys[i], own->items[i]);
    if (formed) {
        json_put_object(json, "format");
        json_put_text(json, "type", "json_schema");
        json_put_raw(json, "schema", request->schema);
        json_object_end(json);
    }
    json_object_end(json);
}

static void put_tool(struct json *json, const struct completion_request *request)
{
    json_put_array(json, "tools");
    json_object(json);
    json_put_text(json, "name", "answer");
    json_put_text(json, "description", "Gives the whole answer.");
    json_put_raw(json, "input_schema", request->schema);
    json_object_end(json);
    json_array_end(json);
    json_put_raw(json, "tool_choice", "{\"type\":\"tool\",\"name\":\"answer\"}");
}

/* The prompt in two blocks; all up to the first one's end, the system's words too, is kept.
 * https://platform.claude.com/docs/en/build-with-claude/prompt-caching */
static void put_cached(struct json *json, struct arena *arena,
                       const struct completion_request *request)
{
    json_put_array(json, "content");
    json_object(json);
    json_put_text(json, "type", "text");
    json_put_text(json, "text", arena_strndup(arena, request->prompt, request->shared));
    json_put_object(json, "cache_control");
    json_put_text(json, "type", "ephemeral");
    if (strcmp(request->cache, "5m") != 0) /* which is the default */
        json_put_text(json, "ttl", request->cache);
    json_object_end(json);
    json_object_end(json);
    json_object(json);
    json_put_text(json, "type", "text");
    json_put_text(json, "text", request->prompt + request->shared);
    json_object_end(json);
    json_array_end(json);
}

static void encode(struct arena *arena, const struct completion_request *request,
                   const char *base_url, const char *key, const char **url,
                   const char *const **headers, struct buf *body)
{
    static const char *const more[] = {"anthropic-version: 2023-06-01",
                                       "content-type: application/json",
                                       "accept: text/event-stream", NULL};
    *url = request_url(arena, base_url, "v1", "messages");
    *headers = request_headers(arena, "x-api-key: ", key, more);

    struct json json = {.out = body};
    json_object(&json);
    json_put_text(&json, "model", request->model);
    json_put_int(&json, "max_tokens", request->max_tokens > 0 ? request->max_tokens : MAX_TOKENS);
    if (request->system != NULL && *request->system != '\0')
        json_put_text(&json, "system", request->system);
    json_put_array(&json, "messages");
    json_object(&json);
    json_put_text(&json, "role", "user");
    if (request->cache != NULL && request->shared > 0)
        put_cached(&json, arena, request);
    else
        json_put_text(&json, "content", request->prompt);
    json_object_end(&json);
    json_array_end(&json);
    if (request->temperature >= 0 &&
        !samples_itself(request->model)) /* the API's range ends at 1 */
        json_put_real(&json, "temperature", request->temperature < 1 ? request->temperature : 1);
    put_output_config(&json, request);
    if (request->schema != NULL && is_old(request->model))
        put_tool(&json, request);
    request_more(&json, request->body, OUTPUT_CONFIG);
    if (!request->whole)
        json_put_bool(&json, "stream", true);
    json_object_end(&json);
}

/* The prompt's share of usage; cached or not, the prompt was sent. A gateway may say 0 first and
 * the count later, so that only a larger one replaces what was said. */
static void read_prompt_usage(struct codec_state *state, const struct value *usage)
{
    int64_t tokens = answer_count(usage, "input_tokens");
    if (tokens < 0)
        return;
    int64_t written = answer_count(usage, "cache_creation_input_tokens");
    int64_t cached = answer_count(usage, "cache_read_input_tokens");
    tokens = answer_sum(answer_sum(tokens, written), cached);
    answer_cache(state, cached, written);
    if (tokens > state->prompt_tokens)
        state->prompt_tokens = tokens;
}

static void read_usage(struct codec_state *state, const struct value *usage)
{
    if (usage == NULL || usage->kind != VALUE_MAP)
        return;
    read_prompt_usage(state, usage);
    if (value_get(usage, "output_tokens") != NULL)
        state->completion_tokens = answer_count(usage, "output_tokens");
    /* Where the server fell back on another model each of its tries is billed. */
    const struct value *tries = value_get(usage, "iterations");
    int64_t all = 0;
    for (size_t i = 0; tries != NULL && tries->kind == VALUE_LIST && i < tries->count; i++) {
        int64_t one = answer_count(tries->items[i], "output_tokens");
        all = one > 0 ? answer_sum(all, one) : all;
    }
    if (all > 0 && all > state->completion_tokens)
        state->completion_tokens = all;
}

static void read_stop_reason(struct codec_state *state, const struct value *holder)
{
    static const struct {
        const char *reason, *finish;
    } reasons[] = {{"end_turn", "stop"},
                   {"stop_sequence", "stop"},
                   {"tool_use", "stop"},
                   {"max_tokens", "length"},
                   {"model_context_window_exceeded", "length"},
                   {"refusal", "refused"}};
    const char *reason = value_text(holder, "stop_reason", NULL);
    if (reason == NULL)
        return;
    answer_set_finish(state, reason);
    state->refused = state->refused || strcmp(reason, "refusal") == 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(reason, reasons[i].reason) == 0)
            state->finish = reasons[i].finish;
}

/* A block, whole or as it begins: a tool's input is {} then, and comes as deltas. */
static void read_block(struct codec_state *state, const struct value *block)
{
    const struct value *input = value_get(block, "input");
    const char *type = value_text(block, "type", "");
    if (strcmp(type, "text") == 0) {
        buf_add_text(&state->text, value_text(block, "text", ""));
    } else if (strcmp(type, "tool_use") == 0 && input != NULL && input->count > 0) {
        struct json json = {.out = &state->text};
        json_value(&json, input);
    }
}

static void read_delta(struct codec_state *state, const struct value *delta)
{
    const char *type = value_text(delta, "type", "");
    if (strcmp(type, "text_delta") == 0)
        buf_add_text(&state->text, value_text(delta, "text", ""));
    else if (strcmp(type, "input_json_delta") == 0)
        buf_add_text(&state->text, value_text(delta, "partial_json", ""));
}

static void read_message(struct codec_state *state, const struct value *message)
{
    answer_set_model(state, value_text(message, "model", NULL));
    read_usage(state, value_get(message, "usage"));
    read_stop_reason(state, message);
    const struct value *content = value_get(message, "content");
    for (size_t i = 0; content != NULL && content->kind == VALUE_LIST && i < content->count; i++)
        read_block(state, content->items[i]);
}

static void read_object(struct codec_state *state, const struct value *object)
{
    const char *type = value_text(object, "type", "");
    if (strcmp(type, "message_start") == 0) {
        /* Its output_tokens is a beginning, not what was used. */
        const struct value *message = value_get(object, "message");
        answer_set_model(state, value_text(message, "model", NULL));
        read_prompt_usage(state, value_get(message, "usage"));
    } else if (strcmp(type, "content_block_start") == 0) {
        read_block(state, value_get(object, "content_block"));
    } else if (strcmp(type, "content_block_delta") == 0) {
        read_delta(state, value_get(object, "delta"));
    } else if (strcmp(type, "message_delta") == 0) {
        read_stop_reason(state, value_get(object, "delta"));
        read_usage(state, value_get(object, "usage"));
    } else if (strcmp(type, "message_stop") == 0) {
        state->done = true;
    } else if (strcmp(type, "message") == 0) {
        read_message(state, object);
    }
}

static void describe(struct arena *arena, const char *model, const char *base_url, const char *key,
                     const char **url, const char *const **headers)
{
    static const char *const more[] = {"anthropic-version: 2023-06-01", "accept: application/json",
                                       NULL};
    const char *rest = arena_printf(arena, "models/%s", request_escape(arena, model));
    *url = request_url(arena, base_url, "v1", rest);
    *headers = request_headers(arena, "x-api-key: ", key, more);
}

const struct codec codec_anthropic = {.name = "anthropic",
                                      .default_url = "https://api.anthropic.com/v1",
                                      .key_variable = "ANTHROPIC_API_KEY",
                                      .encode = encode,
                                      .read = read_object,
                                      .describe = describe,
                                      .max_tokens = MAX_TOKENS};
