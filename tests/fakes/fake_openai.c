/* fake_provider: OpenAI's chat completions. platform.openai.com/docs/api-reference/chat */
#include "fake_provider.h"

#include <string.h>

static const char *const finish_names[FINISHES] = {"stop", "length", "stop", "content_filter"};

static void add_texts(struct bytes *out, const json_t *messages)
{
    size_t index;
    json_t *message;
    json_array_foreach(messages, index, message)
    {
        const char *content = json_string_value(json_object_get(message, "content"));
        bytes_addf(out, "%s\n", content != NULL ? content : "");
    }
}

static const char *read_request(const json_t *document, const struct request *request,
                                struct chat *chat)
{
    (void)request;
    const json_t *messages = json_object_get(document, "messages");
    const json_t *most = json_object_get(document, "max_tokens");
    if (!json_is_array(messages) || json_array_size(messages) == 0 ||
        !json_is_string(json_object_get(document, "model")))
        return "model and messages are needed";
    if (most != NULL && json_integer_value(most) < 1)
        return "max_tokens must be a positive integer";
    chat->stream = json_is_true(json_object_get(document, "stream"));
    chat->usage =
        json_is_true(json_object_get(json_object_get(document, "stream_options"), "include_usage"));
    struct bytes *text = bytes_new();
    add_texts(text, messages);
    bytes_add(text, "", 1);
    chat->text = strdup(text->data);
    bytes_release(text);
    return NULL;
}

static json_t *usage(const struct answer *answer)
{
    json_int_t prompt, completion;
    usage_tokens(answer, &prompt, &completion);
    if (answer->usage == USAGE_TEXT)
        return json_pack("{s:s,s:s}", "prompt_tokens", "many", "completion_tokens", "some");
    return json_pack("{s:I,s:I,s:I}", "prompt_tokens", prompt, "completion_tokens", completion,
                     "total_tokens", prompt + completion);
}

/* A message, whole or a delta of one. */
static json_t *message_of(const struct answer *answer, const char *text, size_t length)
{
    json_t *message = json_pack("{s:s}", "role", "assistant");
    bool silent = answer->null_content || answer->finish == FINISH_REFUSED;
    json_object_set_new(message, "content", silent ? json_null() : json_stringn(text, length));
    json_object_set_new(message, "refusal",
                        answer->finish == FINISH_REFUSED ? json_string("I cannot help with that.")
                                                         : json_null());
    return message;
}

static json_t *document_of(const char *object, json_t *choices)
{
    return json_pack("{s:s,s:s,s:i,s:s,s:o}", "id", "chatcmpl-fake", "object", object, "created",
                     1700000000, "model", "fake-model", "choices", choices);
}

static json_t *plain(const struct answer *answer)
{
    json_t *choices = json_array();
    if (!answer->empty)
        json_array_append_new(choices,
                              json_pack("{s:i,s:o,s:s}", "index", 0, "message",
                                        message_of(answer, answer->text, strlen(answer->text)),
                                        "finish_reason", finish_names[answer->finish]));
    json_t *document = document_of("chat.completion", choices);
    if (answer->usage != USAGE_MISSING)
        json_object_set_new(document, "usage", usage(answer));
    return document;
}

static json_t *chunk(json_t *delta, const char *finish)
{
    json_t *reason = finish != NULL ? json_string(finish) : json_null();
    return document_of("chat.completion.chunk", json_pack("[{s:i,s:o,s:o}]", "index", 0, "delta",
                                                          delta, "finish_reason", reason));
}

static json_t *error(long code, const char *kind);

static void stream(struct events *events, const struct answer *answer, bool with_usage)
{
    const char *text = answer->text, *piece;
    size_t length;
    if (!answer->empty) {
        event_add(events, NULL, chunk(message_of(answer, "", 0), NULL));
        bool silent = answer->null_content || answer->finish == FINISH_REFUSED;
        while (!silent && event_piece(answer, &text, &piece, &length))
            event_add(events, NULL, chunk(json_pack("{s:s%}", "content", piece, length), NULL));
    }
    if (answer->error != 0) {
        event_add(events, NULL, error(answer->error, answer->kind));
        return;
    }
    if (answer->no_end)
        return;
    if (!answer->empty)
        event_add(events, NULL, chunk(json_object(), finish_names[answer->finish]));
    if (with_usage && answer->usage != USAGE_MISSING) {
        json_t *last = document_of("chat.completion.chunk", json_array());
        json_object_set_new(last, "usage", usage(answer));
        event_add(events, NULL, last);
    }
    event_add_raw(events, NULL, "[DONE]");
}

static const struct error_row errors[] = {
    {"quote", 0, "invalid_request_error", NULL, "as scripted, for the key @KEY@"},
    {"quota", 0, "insufficient_quota", "insufficient_quota",
     "You exceeded your current quota, please check your plan and billing details."},
    {"context", 0, "invalid_request_error", "context_length_exceeded",
     "This model's maximum context length is 8192 tokens. However, your messages resulted in "
     "9001 tokens. Please reduce the length of the messages."},
    {"filter", 0, "invalid_request_error", "content_filter",
     "The response was filtered due to the prompt triggering the content management policy."},
    {NULL, 401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: @KEY@."},
    {NULL, 402, "unknown_error", "invalid_request_error", "Insufficient Balance"},
    {NULL, 403, "permission_error", NULL, "You are not allowed to sample from this model, @KEY@."},
    {NULL, 404, "invalid_request_error", "model_not_found",
     "The model does not exist or you do not have access to it."},
    {NULL, 429, "requests", "rate_limit_exceeded", "Rate limit reached for requests, as scripted"},
    {NULL, 500, "server_error", NULL, "The server had an error, as scripted"},
    {NULL, 400, "invalid_request_error", NULL, "as scripted"},
};

static json_t *error(long code, const char *kind)
{
    const struct error_row *row = error_find(errors, sizeof errors / sizeof *errors, code, kind);
    return json_pack("{s:{s:s,s:s,s:n,s:s?}}", "error", "message", row->message, "type", row->type,
                     "param", "code", row->detail);
}

static json_t *model(const char *name)
{
    return json_pack("{s:s,s:s,s:i,s:s}", "id", name, "object", "model", "created", 1700000000,
                     "owned_by", "nobody");
}

const struct format format_openai = {.name = "openai",
                                     .key_header = "authorization",
                                     .key_prefix = "Bearer ",
                                     .read = read_request,
                                     .plain = plain,
                                     .stream = stream,
                                     .error = error,
                                     .model = model};
