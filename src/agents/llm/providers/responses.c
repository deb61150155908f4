/* OpenAI's Responses API. https://developers.openai.com/api/reference/resources/responses and
 * .../guides/streaming-responses; openresponses.org for other servers that speak it.
 *
 *   response.created, response.in_progress (response)
 *   { response.output_item.added, response.output_text.delta..., response.output_item.done }...
 *   response.completed or .incomplete or .failed (the whole response), with "error" anywhere
 *
 * Nothing is kept at the provider (`store`: false). */
#include "agents/llm/providers/answer.h"
#include "agents/llm/providers/fault.h"
#include "agents/llm/providers/request.h"
#include "base/hash.h"
#include "base/json.h"

#include <string.h>

enum { TURN_MOST = 4 << 20 };

static void put_format(struct json *json, const struct completion_request *request)
{
    json_put_object(json, "text");
    json_put_object(json, "format");
    json_put_text(json, "type", request->schema != NULL ? "json_schema" : "json_object");
    if (request->schema != NULL) {
        json_put_text(json, "name", "answer");
        json_put_bool(json, "strict", true);
        json_put_raw(json, "schema", request->schema);
    }
    json_object_end(json);
    json_object_end(json);
}

/* Prompts that begin alike go to the machine that has kept this beginning. */
static void put_cache_key(struct json *json, const struct completion_request *request)
{
    if (request->shared == 0 || value_get(request->body, "prompt_cache_key") != NULL)
        return;
    char key[33];
    hash_format(hash_bytes(request->prompt, request->shared), key);
    json_put_text(json, "prompt_cache_key", key);
}

static void put_input(struct json *json, const struct completion_request *request)
{
    if (request->earlier == NULL) {
        json_put_text(json, "input", request->prompt);
        return;
    }
    json_put_array(json, "input");
    json_raw(json, request->earlier);
    request_message(json, "user", request->prompt);
    json_array_end(json);
}

static void encode(struct arena *arena, const struct completion_request *request,
                   const char *base_url, const char *key, const char **url,
                   const char *const **headers, struct buf *body)
{
    static const char *const more[] = {"content-type: application/json",
                                       "accept: text/event-stream", NULL};
    *url = request_url(arena, base_url, NULL, "responses");
    *headers = request_headers(arena, "authorization: Bearer ", key, more);

    struct json json = {.out = body};
    json_object(&json);
    json_put_text(&json, "model", request->model);
    if (request->system != NULL && *request->system != '\0')
        json_put_text(&json, "instructions", request->system);
    put_input(&json, request);
    if (request->temperature >= 0)
        json_put_real(&json, "temperature", request->temperature);
    if (request->max_tokens > 0)
        json_put_int(&json, "max_output_tokens", request->max_tokens);
    if (request->json || request->schema != NULL)
        put_format(&json, request);
    put_cache_key(&json, request);
    request_more(&json, request->body, NULL);
    json_put_bool(&json, "store", false);
    if (!request->whole)
        json_put_bool(&json, "stream", true);
    json_object_end(&json);
}

/* output_tokens has what was thought in it. */
static void read_usage(struct codec_state *state, const struct value *usage)
{
    if (usage == NULL || usage->kind != VALUE_MAP)
        return;
    state->prompt_tokens = answer_count(usage, "input_tokens");
    state->completion_tokens = answer_count(usage, "output_tokens");
    const struct value *details = value_get(usage, "input_tokens_details");
    answer_cache(state, answer_count(details, "cached_tokens"),
                 answer_count(details, "cache_write_tokens"));
}

/* Messages' texts; what was thought is no answer. */
static void read_item(struct codec_state *state, const struct value *item)
{
    const struct value *content = value_get(item, "content");
    if (strcmp(value_text(item, "type", ""), "message") != 0 || content == NULL ||
        content->kind != VALUE_LIST)
        return;
    for (size_t i = 0; i < content->count; i++) {
        const char *type = value_text(content->items[i], "type", "");
        if (strcmp(type, "output_text") == 0)
            buf_add_text(&state->text, value_text(content->items[i], "text", ""));
        state->refused = state->refused || strcmp(type, "refusal") == 0;
    }
}

/* Thoughts that only the provider can read are worth sending back, the message that they led to
 * behind them. They come where `body` says {include: [reasoning.encrypted_content]}. */
static void keep_turn(struct codec_state *state, const struct value *output)
{
    JSON_LOCAL(json, items, TURN_MOST);
    bool thoughts = false;
    json_array(&json);
    for (size_t i = 0; i < output->count; i++) {
        const struct value *item = output->items[i];
        bool is_thought = *value_text(item, "encrypted_content", "") != '\0';
        if (!is_thought && strcmp(value_text(item, "type", ""), "message") != 0)
            continue;
        thoughts = thoughts || is_thought;
        json_value(&json, item);
    }
    json_array_end(&json);
    if (thoughts && items.dropped == 0) /* without the brackets */
        state->turn = arena_strndup(state->arena, buf_text(&items) + 1, items.length - 2);
}

static void read_end(struct codec_state *state, const struct value *response)
{
    const char *status = value_text(response, "status", "");
    const char *why = value_text(value_get(response, "incomplete_details"), "reason", "");
    if (strcmp(status, "completed") == 0)
        state->finish = "stop";
    else if (strcmp(status, "incomplete") == 0 && strcmp(why, "max_output_tokens") == 0)
        state->finish = "length";
    else if (strcmp(status, "incomplete") == 0)
        answer_set_finish(state, *why != '\0' ? why : "incomplete");
    state->refused = state->refused || strcmp(why, "content_filter") == 0;
}

/* The whole response: an answer that is not streamed, or what a stream's last event has in it, its
 * text once more. */
static void read_response(struct codec_state *state, const struct value *response)
{
    const struct value *error = value_get(response, "error");
    const struct value *output = value_get(response, "output");
    answer_set_model(state, value_text(response, "model", NULL));
    read_usage(state, value_get(response, "usage"));
    read_end(state, response);
    if (error != NULL && error->kind == VALUE_MAP)
        answer_fail(state, error);
    if (output == NULL || output->kind != VALUE_LIST)
        return;
    bool told = state->text.length > 0;
    for (size_t i = 0; !told && i < output->count; i++)
        read_item(state, output->items[i]);
    keep_turn(state, output);
}

static bool is_last(const char *type)
{
    static const char *const last[] = {"response.completed", "response.incomplete",
                                       "response.failed"};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        if (strcmp(type, last[i]) == 0)
            return true;
    return false;
}

static void read_object(struct codec_state *state, const struct value *object)
{
    const char *type = value_text(object, "type", "");
    if (strcmp(type, "response.output_text.delta") == 0) {
        buf_add_text(&state->text, value_text(object, "delta", ""));
    } else if (strncmp(type, "response.refusal.", 17) == 0) {
        state->refused = true;
    } else if (strcmp(type, "error") == 0) {
        answer_fail(state, object);
    } else if (is_last(type)) {
        read_response(state, value_get(object, "response"));
        state->done = true;
    } else if (strcmp(value_text(object, "object", ""), "response") == 0) {
        read_response(state, object);
    }
}

static void describe(struct arena *arena, const char *model, const char *base_url, const char *key,
                     const char **url, const char *const **headers)
{
    codec_openai.describe(arena, model, base_url, key, url, headers);
}

const struct codec codec_responses = {.name = "responses",
                                      .default_url = "https://api.openai.com/v1",
                                      .key_variable = "OPENAI_API_KEY",
                                      .encode = encode,
                                      .read = read_object,
                                      .describe = describe};
