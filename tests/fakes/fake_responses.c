/* fake_provider: OpenAI's Responses API. developers.openai.com/api/reference/resources/responses */
#include "fake_provider.h"

#include <string.h>

static const char *read_request(const json_t *document, const struct request *request,
                                struct chat *chat)
{
    (void)request;
    const char *input = json_string_value(json_object_get(document, "input"));
    const char *instructions = json_string_value(json_object_get(document, "instructions"));
    const json_t *most = json_object_get(document, "max_output_tokens");
    if (input == NULL || !json_is_string(json_object_get(document, "model")))
        return "model and input are needed";
    if (most != NULL && json_integer_value(most) < 16)
        return "max_output_tokens must be 16 or more";
    if (!json_is_false(json_object_get(document, "store")))
        return "nothing is to be kept here";
    chat->stream = json_is_true(json_object_get(document, "stream"));
    chat->usage = true;
    struct bytes *text = bytes_new();
    bytes_addf(text, "%s\n%s\n", instructions != NULL ? instructions : "", input);
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
        return json_pack("{s:s,s:s}", "input_tokens", "many", "output_tokens", "some");
    return json_pack("{s:I,s:{s:i},s:I,s:{s:i},s:I}", "input_tokens", prompt,
                     "input_tokens_details", "cached_tokens", 0, "output_tokens", completion,
                     "output_tokens_details", "reasoning_tokens", 0, "total_tokens",
                     prompt + completion);
}

static json_t *message(const struct answer *answer, const char *text)
{
    json_t *part =
        answer->finish == FINISH_REFUSED
            ? json_pack("{s:s,s:s}", "type", "refusal", "refusal", "I cannot help.")
            : json_pack("{s:s,s:s,s:[]}", "type", "output_text", "text", text, "annotations");
    return json_pack("{s:s,s:s,s:s,s:s,s:[o]}", "type", "message", "id", "msg_1", "status",
                     "completed", "role", "assistant", "content",
                     answer->null_content ? (json_decref(part), json_null()) : part);
}

static json_t *response(const struct answer *answer, const char *status)
{
    static const char *const reasons[FINISHES] = {
        [FINISH_LENGTH] = "max_output_tokens", [FINISH_FILTERED] = "content_filter"};
    bool ended = strcmp(status, "in_progress") != 0;
    const char *why = ended ? reasons[answer->finish] : NULL;
    json_t *output = json_array();
    if (ended && !answer->empty)
        json_array_append_new(output, message(answer, answer->text));
    json_t *whole = json_pack("{s:s,s:s,s:s,s:s,s:n,s:o}", "id", "resp_fake", "object", "response",
                              "model", "fake-model", "status", why != NULL ? "incomplete" : status,
                              "error", "output", output);
    json_object_set_new(whole, "incomplete_details",
                        why != NULL ? json_pack("{s:s}", "reason", why) : json_null());
    if (ended && answer->usage != USAGE_MISSING)
        json_object_set_new(whole, "usage", usage(answer));
    return whole;
}

static json_t *plain(const struct answer *answer)
{
    return response(answer, "completed");
}

static void add(struct events *events, const char *type, json_t *data, const char *key,
                json_t *item)
{
    json_object_set_new(data, "type", json_string(type));
    if (key != NULL)
        json_object_set_new(data, key, item);
    event_add(events, type, data);
}

static json_t *error(long code, const char *kind);

static void stream(struct events *events, const struct answer *answer, bool with_usage)
{
    const char *text = answer->text, *piece;
    size_t length;
    (void)with_usage;
    add(events, "response.created", json_object(), "response", response(answer, "in_progress"));
    bool silent = answer->empty || answer->null_content || answer->finish == FINISH_REFUSED;
    while (!silent && event_piece(answer, &text, &piece, &length))
        add(events, "response.output_text.delta",
            json_pack("{s:s,s:i,s:i}", "item_id", "msg_1", "output_index", 0, "content_index", 0),
            "delta", json_stringn(piece, length));
    if (answer->error != 0) {
        json_t *whole = error(answer->error, answer->kind), *said = json_object_get(whole, "error");
        const char *code = json_string_value(json_object_get(said, "code"));
        if (code == NULL)
            code = json_string_value(json_object_get(said, "type"));
        add(events, "error", json_pack("{s:s?,s:n}", "code", code, "param"), "message",
            json_incref(json_object_get(said, "message")));
        json_decref(whole);
        return;
    }
    if (answer->no_end)
        return;
    if (answer->finish == FINISH_REFUSED)
        add(events, "response.refusal.done", json_pack("{s:s}", "refusal", "I cannot help."), NULL,
            NULL);
    json_t *whole = response(answer, "completed");
    bool cut = strcmp(json_string_value(json_object_get(whole, "status")), "incomplete") == 0;
    add(events, cut ? "response.incomplete" : "response.completed", json_object(), "response",
        whole);
}

static json_t *error(long code, const char *kind)
{
    return format_openai.error(code, kind);
}

static json_t *model(const char *name)
{
    return format_openai.model(name);
}

const struct format format_responses = {.name = "responses",
                                        .key_header = "authorization",
                                        .key_prefix = "Bearer ",
                                        .read = read_request,
                                        .plain = plain,
                                        .stream = stream,
                                        .error = error,
                                        .model = model};
