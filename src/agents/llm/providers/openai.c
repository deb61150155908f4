/* OpenAI chat completions, and whatever else speaks them: vLLM, Ollama, llama.cpp, OpenRouter,
 * DeepSeek, gateways. https://platform.openai.com/docs/api-reference/chat
 *
 * A streamed answer is server-sent events whose data are chunk objects, then "[DONE]". */
#include "agents/llm/providers/answer.h"
#include "agents/llm/providers/fault.h"
#include "agents/llm/providers/request.h"
#include "base/json.h"

#include <string.h>

static bool is_openai(const char *base_url)
{
    return request_is_at(base_url, "api.openai.com") || request_is_at(base_url, "openai.azure.com");
}

/* A schema goes to OpenAI itself alone: other servers take it, ignore it or refuse the request, and
 * cannot be told apart by their address. */
static void put_format(struct json *json, const struct completion_request *request, bool schema)
{
    json_key(json, "response_format");
    if (!schema) {
        json_raw(json, "{\"type\":\"json_object\"}");
        return;
    }
    json_object(json);
    json_put_text(json, "type", "json_schema");
    json_put_object(json, "json_schema");
    json_put_text(json, "name", "answer");
    json_put_bool(json, "strict", true);
    json_put_raw(json, "schema", request->schema);
    json_object_end(json);
    json_object_end(json);
}

static void encode(struct arena *arena, const struct completion_request *request,
                   const char *base_url, const char *key, const char **url,
                   const char *const **headers, struct buf *body)
{
    static const char *const more[] = {"content-type: application/json",
                                       "accept: text/event-stream", NULL};
    *url = request_url(arena, base_url, NULL, "chat/completions");
    *headers = request_headers(arena, "authorization: Bearer ", key, more);

    struct json json = {.out = body};
    json_object(&json);
    json_put_text(&json, "model", request->model);
    json_put_array(&json, "messages");
    if (request->system != NULL && *request->system != '\0')
        request_message(&json, "system", request->system);
    request_message(&json, "user", request->prompt);
    json_array_end(&json);
    if (request->temperature >= 0)
        json_put_real(&json, "temperature", request->temperature);
    /* OpenAI's own newer models refuse the old name; other servers do not know the new one. */
    if (request->max_tokens > 0)
        json_put_int(&json, is_openai(base_url) ? "max_completion_tokens" : "max_tokens",
                     request->max_tokens);
    if (request->json || request->schema != NULL)
        put_format(&json, request, request->schema != NULL && is_openai(base_url));
    request_more(&json, request->body, NULL);
    if (!request->whole) {
        json_put_bool(&json, "stream", true);
        json_put_raw(&json, "stream_options", "{\"include_usage\":true}");
    }
    json_object_end(&json);
}

/* US dollars as a number (OpenRouter; where the person's own key paid the model's provider, that is
 * beside it) or as an object with a sum (Perplexity). */
static int64_t read_cost(const struct value *usage)
{
    static const double most = 1e6;
    const struct value *cost = value_get(usage, "cost");
    double dollars = cost != NULL && cost->kind == VALUE_MAP ? value_real(cost, "total_cost", 0)
                                                             : value_real(usage, "cost", 0);
    if (value_bool(usage, "is_byok", false))
        dollars += value_real(value_get(usage, "cost_details"), "upstream_inference_cost", 0);
    return dollars > 0 && dollars < most ? (int64_t)(dollars * 1e6 + 0.999) : 0;
}

/* Most servers count reasoning inside completion_tokens; where one does not, the total or the
 * details tell, and the larger sum is what is paid for. */
static void read_usage(struct codec_state *state, const struct value *usage)
{
    if (usage == NULL || usage->kind != VALUE_MAP)
        return;
    int64_t prompt = answer_count(usage, "prompt_tokens");
    int64_t completion = answer_count(usage, "completion_tokens");
    int64_t total = answer_count(usage, "total_tokens");
    int64_t reasoning =
        answer_count(value_get(usage, "completion_tokens_details"), "reasoning_tokens");
    if (completion >= 0 && reasoning > completion)
        completion = answer_sum(completion, reasoning);
    if (completion >= 0 && prompt >= 0 && total >= prompt && total - prompt > completion)
        completion = total - prompt;
    state->prompt_tokens = prompt;
    state->completion_tokens = completion;
    state->billed_micro = read_cost(usage);
    const struct value *details = value_get(usage, "prompt_tokens_details");
    answer_cache(state, answer_count(details, "cached_tokens"),
                 answer_count(details, "cache_write_tokens")); /* OpenRouter */
}

/* A text, or (Mistral) a list of parts. */
static void read_content(struct codec_state *state, const struct value *content)
{
    if (content == NULL)
        return;
    if (content->kind == VALUE_TEXT)
        buf_add(&state->text, content->text, content->length);
    for (size_t i = 0; content->kind == VALUE_LIST && i < content->count; i++)
        if (strcmp(value_text(content->items[i], "type", ""), "text") == 0)
            buf_add_text(&state->text, value_text(content->items[i], "text", ""));
}

static void read_choice(struct codec_state *state, const struct value *choice)
{
    const struct value *error = value_get(choice, "error"); /* OpenRouter */
    if (error != NULL && error->kind == VALUE_MAP) {
        answer_fail(state, error);
        return;
    }
    const struct value *message = value_get(choice, "delta");
    if (message == NULL)
        message = value_get(choice, "message");
    read_content(state, value_get(message, "content"));
    const char *reason = value_text(choice, "finish_reason", NULL);
    if (*value_text(message, "refusal", "") != '\0' ||
        (reason != NULL && strcmp(reason, "content_filter") == 0))
        state->refused = true;
    if (reason != NULL)
        answer_set_finish(state, reason);
}

/* One chunk, or the whole answer: the same object but for delta and message. */
static void read_object(struct codec_state *state, const struct value *object)
{
    answer_set_model(state, value_text(object, "model", NULL));
    read_usage(state, value_get(object, "usage"));
    const struct value *choices = value_get(object, "choices");
    if (choices != NULL && choices->kind == VALUE_LIST && choices->count > 0)
        read_choice(state, choices->items[0]);
}

static void describe(struct arena *arena, const char *model, const char *base_url, const char *key,
                     const char **url, const char *const **headers)
{
    static const char *const more[] = {"accept: application/json", NULL};
    const char *rest = arena_printf(arena, "models/%s", request_escape(arena, model));
    *url = request_url(arena, base_url, NULL, rest);
    *headers = request_headers(arena, "authorization: Bearer ", key, more);
}

const struct codec codec_openai = {.name = "openai",
                                   .default_url = "https://api.openai.com/v1",
                                   .key_variable = "OPENAI_API_KEY",
                                   .encode = encode,
                                   .read = read_object,
                                   .describe = describe};
