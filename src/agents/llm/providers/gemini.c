/* Gemini generateContent. https://ai.google.dev/api/generate-content
 *
 * A streamed answer (alt=sse) is events whose data are whole GenerateContentResponse objects: the
 * text in pieces, usage so far in each, a finishReason in the last. There is no closing event. */
#include "agents/llm/providers/answer.h"
#include "agents/llm/providers/fault.h"
#include "agents/llm/providers/request.h"
#include "base/json.h"

#include <string.h>

/* The API itself lists its models as "models/NAME". */
static const char *resource(struct arena *arena, const char *model)
{
    return request_escape(arena, strncmp(model, "models/", 7) == 0 ? model + 7 : model);
}

/* Vertex has the version before the publisher:
 * "https://aiplatform.googleapis.com/v1/publishers/google" with a key,
 * ".../v1/projects/P/locations/L/publishers/google" with a token. */
static const char *version_of(const char *base_url)
{
    return strstr(base_url, "/publishers/") != NULL ? NULL : "v1beta";
}

static void put_text_parts(struct json *json, const char *text)
{
    json_put_array(json, "parts");
    json_object(json);
    json_put_text(json, "text", text);
    json_object_end(json);
    json_array_end(json);
}

/* The API's own schema language knows no additionalProperties; a JSON schema has a field of its
 * own. https://ai.google.dev/gemini-api/docs/structured-output */
static void put_config(struct json *json, const struct completion_request *request)
{
    json_put_object(json, "generationConfig");
    if (request->temperature >= 0)
        json_put_real(json, "temperature", request->temperature);
    if (request->max_tokens > 0)
        json_put_int(json, "maxOutputTokens", request->max_tokens);
    if (request->json || request->schema != NULL)
        json_put_text(json, "responseMimeType", "application/json");
    if (request->schema != NULL) {
        json_put_raw(json, "responseJsonSchema", request->schema);
    }
    request_more(json, request->body, NULL);
    json_object_end(json);
}

static void encode(struct arena *arena, const struct completion_request *request,
                   const char *base_url, const char *key, const char **url,
                   const char *const **headers, struct buf *body)
{
    static const char *const more[] = {"content-type: application/json",
                                       "accept: text/event-stream", NULL};
    const char *rest = arena_printf(arena, "models/%s:streamGenerateContent?alt=sse",
                                    resource(arena, request->model));
    *url = request_url(arena, base_url, version_of(base_url), rest);
    *headers = request_headers(arena, "x-goog-api-key: ", key, more);

    struct json json = {.out = body};
    json_object(&json);
    if (request->system != NULL && *request->system != '\0') {
        json_put_object(&json, "systemInstruction");
        put_text_parts(&json, request->system);
        json_object_end(&json);
    }
    json_put_array(&json, "contents");
    json_object(&json);
    json_put_text(&json, "role", "user");
    put_text_parts(&json, request->prompt);
    json_object_end(&json);
    json_array_end(&json);
    put_config(&json, request);
    json_object_end(&json);
}

/* Thinking is paid for like what is seen, and counted apart. */
static void read_usage(struct codec_state *state, const struct value *usage)
{
    if (usage == NULL || usage->kind != VALUE_MAP)
        return;
    const struct value *seen = value_get(usage, "candidatesTokenCount");
    const struct value *thought = value_get(usage, "thoughtsTokenCount");
    if (value_get(usage, "promptTokenCount") != NULL)
        state->prompt_tokens = answer_count(usage, "promptTokenCount");
    answer_cache(state, answer_count(usage, "cachedContentTokenCount"), 0);
    if (seen == NULL && thought == NULL)
        return;
    int64_t seen_count = answer_count(usage, "candidatesTokenCount");
    int64_t thought_count = answer_count(usage, "thoughtsTokenCount");
    bool wrong = (seen != NULL && seen_count < 0) || (thought != NULL && thought_count < 0);
    state->completion_tokens = wrong ? -1 : answer_sum(seen_count, thought_count);
    /* The total has tools' prompts, too, and whatever else is paid for. */
    int64_t total = answer_count(usage, "totalTokenCount");
    if (state->prompt_tokens >= 0 && state->completion_tokens >= 0 &&
        total >= state->prompt_tokens && total - state->prompt_tokens > state->completion_tokens)
        state->completion_tokens = total - state->prompt_tokens;
}

static void read_finish_reason(struct codec_state *state, const char *reason)
{
    static const char *const refusals[] = {
        "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (strcmp(reason, refusals[i]) == 0)
            state->refused = true;
    if (strcmp(reason, "STOP") == 0)
        state->finish = "stop";
    else if (strcmp(reason, "MAX_TOKENS") == 0)
        state->finish = "length";
    else if (strcmp(reason, "FINISH_REASON_UNSPECIFIED") != 0)
        answer_set_finish(state, reason);
}

static void read_candidate(struct codec_state *state, const struct value *candidate)
{
    const struct value *parts = value_at(candidate, "content.parts");
    for (size_t i = 0; parts != NULL && parts->kind == VALUE_LIST && i < parts->count; i++)
        if (!value_bool(parts->items[i], "thought", false))
            buf_add_text(&state->text, value_text(parts->items[i], "text", ""));
    const char *reason = value_text(candidate, "finishReason", NULL);
    if (reason != NULL)
        read_finish_reason(state, reason);
}

static void read_object(struct codec_state *state, const struct value *object)
{
    answer_set_model(state, value_text(object, "modelVersion", NULL));
    read_usage(state, value_get(object, "usageMetadata"));
    const struct value *feedback = value_get(object, "promptFeedback");
    if (*value_text(feedback, "blockReason", "") != '\0') {
        state->refused = true;
        state->finish = "refused";
    }
    const struct value *candidates = value_get(object, "candidates");
    if (candidates != NULL && candidates->kind == VALUE_LIST && candidates->count > 0)
        read_candidate(state, candidates->items[0]);
}

static void describe(struct arena *arena, const char *model, const char *base_url, const char *key,
                     const char **url, const char *const **headers)
{
    static const char *const more[] = {"accept: application/json", NULL};
    const char *rest = arena_printf(arena, "models/%s", resource(arena, model));
    *url = request_url(arena, base_url, version_of(base_url), rest);
    *headers = request_headers(arena, "x-goog-api-key: ", key, more);
}

const struct codec codec_gemini = {.name = "gemini",
                                   .default_url =
                                       "https://generativelanguage.googleapis.com/v1beta",
                                   .key_variable = "GOOGLE_API_KEY",
                                   .encode = encode,
                                   .read = read_object,
                                   .describe = describe};
