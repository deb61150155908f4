/* fake_provider: Gemini's generateContent. ai.google.dev/api/generate-content. The model and
 * whether the answer is streamed stand in the path; unknown fields are refused, as there. */
#include "fake_provider.h"

#include <string.h>

static const char *const finish_names[FINISHES] = {"STOP", "MAX_TOKENS", "STOP", "SAFETY"};

static void add_parts(struct bytes *out, const json_t *content)
{
    size_t index;
    json_t *part;
    json_array_foreach(json_object_get(content, "parts"), index, part)
    {
        const char *text = json_string_value(json_object_get(part, "text"));
        bytes_addf(out, "%s\n", text != NULL ? text : "");
    }
}

static const char *unknown_field(const json_t *document, const char *const *known)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)document, name, value)
    {
        const char *const *at = known;
        while (*at != NULL && strcmp(name, *at) != 0)
            at++;
        if (*at == NULL)
            return "Invalid JSON payload received. Unknown name: Cannot find field.";
    }
    return NULL;
}

static const char *read_request(const json_t *document, const struct request *request,
                                struct chat *chat)
{
    static const char *const known[] = {
        "contents", "systemInstruction", "system_instruction", "generationConfig",
        "tools",    "toolConfig",        "safetySettings",     "cachedContent",
        NULL};
    static const char *const known_config[] = {"temperature",
                                               "maxOutputTokens",
                                               "responseMimeType",
                                               "responseSchema",
                                               "topP",
                                               "responseJsonSchema",
                                               "candidateCount",
                                               "topK",
                                               "thinkingConfig",
                                               "stopSequences",
                                               "seed",
                                               NULL};
    const json_t *contents = json_object_get(document, "contents");
    const json_t *config = json_object_get(document, "generationConfig");
    if (!json_is_array(contents) || json_array_size(contents) == 0)
        return "* GenerateContentRequest.contents: contents is not specified";
    if (unknown_field(document, known) != NULL || unknown_field(config, known_config) != NULL)
        return "Invalid JSON payload received. Unknown name: Cannot find field.";
    chat->stream = strstr(request->path, ":streamGenerateContent") != NULL;
    if (chat->stream && strstr(request->path, "alt=sse") == NULL)
        return "the fake streams with alt=sse alone";
    chat->usage = true;
    struct bytes *text = bytes_new();
    const json_t *system = json_object_get(document, "systemInstruction");
    size_t index;
    json_t *content;
    add_parts(text, system != NULL ? system : json_object_get(document, "system_instruction"));
    json_array_foreach(contents, index, content) add_parts(text, content);
    bytes_add(text, "", 1);
    chat->text = strdup(text->data);
    bytes_release(text);
    return NULL;
}

static void set_usage(json_t *at, const struct answer *answer)
{
    json_int_t prompt, completion;
    usage_tokens(answer, &prompt, &completion);
    json_t *usage = NULL;
    if (answer->usage == USAGE_TEXT)
        usage = json_pack("{s:s,s:s}", "promptTokenCount", "many", "candidatesTokenCount", "some");
    else if (answer->usage != USAGE_MISSING)
        usage = json_pack("{s:I,s:I,s:I}", "promptTokenCount", prompt, "candidatesTokenCount",
                          completion, "totalTokenCount", prompt + completion);
    if (usage != NULL)
        json_object_set_new(at, "usageMetadata", usage);
}

/* One object of the answer; `finish` NULL: more follow. */
static json_t *part_of(const struct answer *answer, const char *text, size_t length,
                       const char *finish)
{
    json_t *document = json_pack("{s:s,s:s}", "modelVersion", "fake-model", "responseId", "fake");
    if (answer->finish == FINISH_REFUSED) {
        json_object_set_new(document, "promptFeedback",
                            json_pack("{s:s}", "blockReason", "PROHIBITED_CONTENT"));
    } else if (!answer->empty) {
        json_t *candidate = json_pack("{s:i}", "index", 0);
        json_t *content = json_pack("{s:s}", "role", "model");
        if (!answer->null_content && answer->finish != FINISH_FILTERED)
            json_object_set_new(content, "parts", json_pack("[{s:s%}]", "text", text, length));
        json_object_set_new(candidate, "content", content);
        if (finish != NULL)
            json_object_set_new(candidate, "finishReason", json_string(finish));
        json_object_set_new(document, "candidates", json_pack("[o]", candidate));
    }
    set_usage(document, answer);
    return document;
}

static json_t *plain(const struct answer *answer)
{
    return part_of(answer, answer->text, strlen(answer->text), finish_names[answer->finish]);
}

static json_t *error(long code, const char *kind);

static void stream(struct events *events, const struct answer *answer, bool with_usage)
{
    (void)with_usage;
    const char *text = answer->text, *piece;
    size_t length;
    bool silent = answer->empty || answer->null_content || answer->finish == FINISH_REFUSED ||
                  answer->finish == FINISH_FILTERED;
    while (!silent && event_piece(answer, &text, &piece, &length))
        event_add(events, NULL, part_of(answer, piece, length, NULL));
    if (answer->error != 0)
        event_add(events, NULL, error(answer->error, answer->kind));
    else if (!answer->no_end)
        event_add(events, NULL, part_of(answer, "", 0, finish_names[answer->finish]));
}

static const struct error_row errors[] = {
    {"quote", 400, "INVALID_ARGUMENT", NULL, "as scripted, for the key @KEY@"},
    {"quota", 429, "RESOURCE_EXHAUSTED", NULL,
     "Your prepayment credits are depleted. Please go to AI Studio to manage your project and "
     "billing."},
    {"context", 400, "INVALID_ARGUMENT", NULL,
     "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."},
    {"key", 400, "INVALID_ARGUMENT", "API_KEY_INVALID",
     "API key not valid. Please pass a valid API key."},
    {NULL, 401, "UNAUTHENTICATED", NULL, "Request had invalid credentials: @KEY@."},
    {NULL, 403, "PERMISSION_DENIED", NULL, "Your API key @KEY@ was reported as leaked."},
    {NULL, 404, "NOT_FOUND", NULL,
     "models/no-such-model is not found for API version v1beta, or is not supported for "
     "generateContent."},
    {NULL, 408, "DEADLINE_EXCEEDED", NULL, "Deadline expired before operation could complete."},
    {NULL, 409, "ABORTED", NULL, "The operation was aborted."},
    {NULL, 429, "RESOURCE_EXHAUSTED", NULL, "Resource has been exhausted (e.g. check quota)."},
    {NULL, 503, "UNAVAILABLE", NULL, "The model is overloaded. Please try again later."},
    {NULL, 504, "DEADLINE_EXCEEDED", NULL, "Deadline expired before operation could complete."},
    {NULL, 500, "INTERNAL", NULL, "An internal error has occurred. Please retry."},
    {NULL, 400, "INVALID_ARGUMENT", NULL, "as scripted"},
};

static json_t *error(long code, const char *kind)
{
    const struct error_row *row = error_find(errors, sizeof errors / sizeof *errors, code, kind);
    json_t *document = json_pack("{s:{s:i,s:s,s:s}}", "error", "code", (int)code, "message",
                                 row->message, "status", row->type);
    if (row->detail != NULL)
        json_object_set_new(json_object_get(document, "error"), "details",
                            json_pack("[{s:s,s:s,s:s}]", "@type",
                                      "type.googleapis.com/google.rpc.ErrorInfo", "reason",
                                      row->detail, "domain", "googleapis.com"));
    if (kind != NULL && strncmp(kind, "delay_", 6) == 0) /* it says so in the body alone */
        json_object_set_new(json_object_get(document, "error"), "details",
                            json_pack("[{s:s,s:s+}]", "@type",
                                      "type.googleapis.com/google.rpc.RetryInfo", "retryDelay",
                                      kind + 6, "s"));
    return document;
}

static json_t *model(const char *name)
{
    return json_pack("{s:s+,s:s,s:i,s:i}", "name", "models/", name, "displayName", name,
                     "inputTokenLimit", 1048576, "outputTokenLimit", 65536);
}

const struct format format_gemini = {.name = "gemini",
                                     .key_header = "x-goog-api-key",
                                     .key_prefix = "",
                                     .read = read_request,
                                     .plain = plain,
                                     .stream = stream,
                                     .error = error,
                                     .model = model};
