/* fake_provider: Anthropic's messages. docs.anthropic.com/en/api/messages, .../messages-streaming
 * and .../errors. Unknown fields are refused, as there. */
#include "fake_provider.h"

#include <string.h>

static const char *const finish_names[FINISHES] = {"end_turn", "max_tokens", "refusal", "refusal"};

static void add_content(struct bytes *out, const json_t *content)
{
    size_t index;
    json_t *block;
    if (json_is_string(content))
        bytes_addf(out, "%s", json_string_value(content));
    json_array_foreach(content, index, block)
    {
        const char *text = json_string_value(json_object_get(block, "text"));
        bytes_addf(out, "%s", text != NULL ? text : "");
    }
    bytes_addf(out, "\n");
}

static const char *unknown_field(const json_t *document)
{
    static const char *const known[] = {
        "model",       "max_tokens",  "messages",      "system",         "stream",
        "temperature", "top_p",       "top_k",         "stop_sequences", "metadata",
        "tools",       "tool_choice", "output_config", "thinking",       "output_format"};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)document, name, value)
    {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            found = found || strcmp(name, known[i]) == 0;
        if (!found)
            return "Extra inputs are not permitted";
    }
    return NULL;
}

static const char *read_request(const json_t *document, const struct request *request,
                                struct chat *chat)
{
    char version[64];
    request_header(request, "anthropic-version", version, sizeof version);
    const json_t *messages = json_object_get(document, "messages");
    const json_t *temperature = json_object_get(document, "temperature");
    if (version[0] == '\0')
        return "anthropic-version: header is required";
    if (!json_is_string(json_object_get(document, "model")))
        return "model: Field required";
    if (json_integer_value(json_object_get(document, "max_tokens")) < 1)
        return "max_tokens: Field required";
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return "messages: at least one message is required";
    if (temperature != NULL &&
        (json_number_value(temperature) < 0 || json_number_value(temperature) > 1))
        return "temperature: Input should be between 0 and 1";
    if (unknown_field(document) != NULL)
        return unknown_field(document);
    chat->stream = json_is_true(json_object_get(document, "stream"));
    chat->usage = true;
    const char *choice =
        json_string_value(json_object_get(json_object_get(document, "tool_choice"), "type"));
    chat->as_tool = choice != NULL && strcmp(choice, "tool") == 0;
    struct bytes *text = bytes_new();
    size_t index;
    json_t *message;
    add_content(text, json_object_get(document, "system"));
    json_array_foreach(messages, index, message)
        add_content(text, json_object_get(message, "content"));
    bytes_add(text, "", 1);
    chat->text = strdup(text->data);
    bytes_release(text);
    return NULL;
}

static void set_usage(json_t *at, const struct answer *answer, bool with_input)
{
    json_int_t prompt, completion;
    usage_tokens(answer, &prompt, &completion);
    if (answer->usage == USAGE_MISSING)
        return;
    json_t *usage = answer->usage == USAGE_TEXT ? json_pack("{s:s}", "output_tokens", "some")
                                                : json_pack("{s:I}", "output_tokens", completion);
    if (with_input)
        json_object_set_new(usage, "input_tokens", json_integer(prompt));
    json_object_set_new(at, "usage", usage);
}

static json_t *message_of(json_t *content, const char *finish)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:s?,s:n}", "id", "msg_fake", "type", "message", "role",
                     "assistant", "model", "fake-model", "content", content, "stop_reason", finish,
                     "stop_sequence");
}

static json_t *block_of(const struct answer *answer, const char *text)
{
    if (!answer->as_tool)
        return json_pack("{s:s,s:s}", "type", "text", "text", text);
    json_t *input = json_loads(text, 0, NULL);
    return json_pack("{s:s,s:s,s:s,s:o}", "type", "tool_use", "id", "toolu_fake", "name", "answer",
                     "input", input != NULL ? input : json_object());
}

static bool silent(const struct answer *answer)
{
    return answer->empty || answer->null_content || answer->finish == FINISH_REFUSED ||
           answer->finish == FINISH_FILTERED;
}

static json_t *plain(const struct answer *answer)
{
    json_t *content = json_array();
    if (!silent(answer))
        json_array_append_new(content, block_of(answer, answer->text));
    const char *finish = answer->as_tool ? "tool_use" : finish_names[answer->finish];
    json_t *message = message_of(content, finish);
    set_usage(message, answer, true);
    return message;
}

static json_t *error(long code, const char *kind);

static void add_block(struct events *events, const struct answer *answer)
{
    const char *text = answer->text, *piece;
    size_t length;
    event_add(events, "content_block_start",
              json_pack("{s:s,s:i,s:o}", "type", "content_block_start", "index", 0, "content_block",
                        block_of(answer, "")));
    event_add(events, "ping", json_pack("{s:s}", "type", "ping"));
    while (event_piece(answer, &text, &piece, &length))
        event_add(events, "content_block_delta",
                  json_pack("{s:s,s:i,s:{s:s,s:s%}}", "type", "content_block_delta", "index", 0,
                            "delta", "type", answer->as_tool ? "input_json_delta" : "text_delta",
                            answer->as_tool ? "partial_json" : "text", piece, length));
    if (answer->error == 0 && !answer->no_end)
        event_add(events, "content_block_stop",
                  json_pack("{s:s,s:i}", "type", "content_block_stop", "index", 0));
}

static void stream(struct events *events, const struct answer *answer, bool with_usage)
{
    (void)with_usage;
    struct answer first = *answer; /* at its start a message has said one token */
    first.text = "";
    json_t *message = message_of(json_array(), NULL);
    set_usage(message, &first, true);
    event_add(events, "message_start",
              json_pack("{s:s,s:o}", "type", "message_start", "message", message));
    if (!silent(answer))
        add_block(events, answer);
    if (answer->error != 0) {
        event_add(events, "error", error(answer->error, answer->kind));
        return;
    }
    if (answer->no_end)
        return;
    json_t *delta =
        json_pack("{s:s,s:{s:s,s:n}}", "type", "message_delta", "delta", "stop_reason",
                  answer->as_tool ? "tool_use" : finish_names[answer->finish], "stop_sequence");
    set_usage(delta, answer, false);
    event_add(events, "message_delta", delta);
    event_add(events, "message_stop", json_pack("{s:s}", "type", "message_stop"));
}

static const struct error_row errors[] = {
    {"quote", 0, "invalid_request_error", NULL, "as scripted, for the key @KEY@"},
    {"quota", 0, "invalid_request_error", NULL,
     "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to "
     "upgrade or purchase credits."},
    {"context", 0, "invalid_request_error", NULL,
     "prompt is too long: 250001 tokens > 200000 maximum"},
    {NULL, 401, "authentication_error", NULL, "invalid x-api-key @KEY@"},
    {NULL, 402, "billing_error", NULL,
     "There is an issue with your billing or payment information."},
    {NULL, 403, "permission_error", NULL, "@KEY@ does not have permission to use this resource."},
    {NULL, 404, "not_found_error", NULL, "model: no-such-model"},
    {NULL, 413, "request_too_large", NULL, "Request exceeds the maximum size"},
    {NULL, 429, "rate_limit_error", NULL, "This request would exceed your rate limit."},
    {NULL, 504, "timeout_error", NULL, "Request timed out"},
    {NULL, 529, "overloaded_error", NULL, "Overloaded"},
    {NULL, 500, "api_error", NULL, "Internal server error"},
    {NULL, 400, "invalid_request_error", NULL, "as scripted"},
};

static json_t *error(long code, const char *kind)
{
    const struct error_row *row = error_find(errors, sizeof errors / sizeof *errors, code, kind);
    return json_pack("{s:s,s:{s:s,s:s},s:s}", "type", "error", "error", "type", row->type,
                     "message", row->message, "request_id", "req_fake");
}

static json_t *model(const char *name)
{
    return json_pack("{s:s,s:s,s:s,s:s}", "type", "model", "id", name, "display_name", name,
                     "created_at", "2025-02-19T00:00:00Z");
}

const struct format format_anthropic = {.name = "anthropic",
                                        .key_header = "x-api-key",
                                        .key_prefix = "",
                                        .read = read_request,
                                        .plain = plain,
                                        .stream = stream,
                                        .error = error,
                                        .model = model};
