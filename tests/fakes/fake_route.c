/* fake_provider: who answers what: the three formats' requests for completions and for a model,
 * and the test's own questions, which are not counted. */
#include "fake_provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct options options;
static size_t answer_next;

void route_init(const struct options *given)
{
    options = *given;
}

void request_header(const struct request *request, const char *name, char *value, size_t size)
{
    size_t length = strlen(name);
    value[0] = '\0';
    for (const char *line = request->headers; line != NULL && *line != '\0';) {
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            line += length + 1;
            line += strspn(line, " ");
            snprintf(value, size, "%.*s", (int)strcspn(line, "\r"), line);
            return;
        }
        line = strstr(line, "\r\n");
        line = line != NULL ? line + 2 : NULL;
    }
}

static struct response refuse(const struct format *format, long code, const char *kind,
                              const char *message)
{
    json_t *document = format->error(code, kind);
    counts.refused++;
    if (message != NULL)
        json_object_set_new(json_object_get(document, "error"), "message", json_string(message));
    return json_page(code, "", document);
}

/* --- the key --- */

static void note_key(const struct request *request)
{
    char value[1024];
    answers_key("no key");
    for (size_t i = 0; i < FORMATS; i++) {
        request_header(request, formats[i]->key_header, value, sizeof value);
        if (value[0] == '\0')
            continue;
        const char *space = strrchr(value, ' ');
        answers_key(space != NULL ? space + 1 : value);
        counts.keys++;
        return;
    }
}

static bool key_fits(const struct request *request, const struct format *format)
{
    char value[1024];
    size_t prefix = strlen(format->key_prefix);
    request_header(request, format->key_header, value, sizeof value);
    return options.key == NULL || (strncmp(value, format->key_prefix, prefix) == 0 &&
                                   strcmp(value + prefix, options.key) == 0);
}

/* Gemini answers a wrong key with 400 and a reason. */
static struct response wrong_key(const struct format *format)
{
    return format == &format_gemini ? refuse(format, 400, "key", NULL)
                                    : refuse(format, 401, NULL, NULL);
}

/* --- models --- */

/* Any name will do where the fake was not told any. */
static bool model_known(const char *name, size_t length)
{
    const char *list = options.model != NULL ? options.model : "";
    while (*list != '\0') {
        size_t item = strcspn(list, ",");
        if (item == length && strncmp(list, name, length) == 0)
            return true;
        list += item + (list[item] == ',');
    }
    return options.model == NULL;
}

static struct response respond_model(const struct format *format, const char *name)
{
    counts.models++;
    if (!model_known(name, strlen(name)))
        return refuse(format, 404, NULL, NULL);
    return json_page(200, "", format->model(name));
}

static struct response respond_models(const struct format *format)
{
    const char *list = options.model != NULL ? options.model : "fake-model";
    json_t *models = json_array();
    counts.models++;
    for (size_t length; *list != '\0'; list += length + (list[length] == ',')) {
        char name[256];
        length = strcspn(list, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, list);
        json_array_append_new(models, format->model(name));
    }
    return json_page(200, "",
                     format == &format_gemini
                         ? json_pack("{s:o}", "models", models)
                         : json_pack("{s:s,s:o}", "object", "list", "data", models));
}

/* --- completions --- */

static void record(const struct request *request)
{
    char path[4096];
    if (options.record == NULL)
        return;
    snprintf(path, sizeof path, "%s/%06u.json", options.record, counts.chats);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        fprintf(stderr, "fake_provider: cannot write %s\n", path);
        exit(2);
    }
    fwrite(request->body, 1, request->body_length, file);
    fclose(file);
}

/* The model's name: in Gemini's path, in the others' body. */
static bool chat_model_known(const struct format *format, const struct request *request,
                             const json_t *document)
{
    if (format == &format_gemini) {
        const char *name = request->path + strlen("/v1beta/models/");
        return model_known(name, strcspn(name, ":"));
    }
    const char *name = json_string_value(json_object_get(document, "model"));
    return name != NULL && model_known(name, strlen(name));
}

static struct response respond_chat(const struct format *format, const struct request *request)
{
    char path[128];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(request->path, "?"), request->path);
    bool embeds = format == &format_embeddings;
    counts.embeddings += embeds;
    counts.chats += !embeds;
    if (!embeds)
        record(request);
    struct chat chat = {.format = format,
                        .hash = bytes_hash(0, request->body, request->body_length),
                        .answer = answer_next};
    struct tally *tally = tally_of(format, path, chat.hash);
    unsigned attempt = tally_request(tally);
    json_t *document = json_loadb(request->body, request->body_length, 0, NULL);
    const char *wrong =
        json_is_object(document) ? format->read(document, request, &chat) : "no JSON object";
    bool known = chat_model_known(format, request, document);
    json_decref(document);
    if (wrong != NULL || !known) {
        free(chat.text);
        return refuse(format, wrong != NULL ? 400 : 404, NULL, wrong);
    }
    counts.streams += chat.stream;
    const struct fault *fault = script_next(&chat, attempt);
    struct response response = fault->type->respond(fault, &chat);
    counts.faults += fault->type != &fault_types[0];
    answer_next += fault->type->delivers &&
                   format != &format_embeddings; /* else it is kept for the next request */
    if (fault->delay > 0)
        response.delay_ms = fault->delay;
    if (fault->type->delivers)
        response.tally = tally;
    free(chat.text);
    return response;
}

/* --- paths --- */

/* Anthropic's and OpenAI's models have the same path; the headers tell them apart. */
static bool is_anthropic(const struct request *request)
{
    char key[8], version[8];
    request_header(request, "x-api-key", key, sizeof key);
    request_header(request, "anthropic-version", version, sizeof version);
    return key[0] != '\0' || version[0] != '\0';
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static struct response not_found(const struct format *format, const struct request *request)
{
    struct response response = refuse(format, 404, NULL, "no such path");
    if (strcmp(request->method, "HEAD") == 0) /* the head alone */
        response.bytes->length =
            (size_t)(strstr(response.bytes->data, "\r\n\r\n") + 4 - response.bytes->data);
    return response;
}

struct response route(const struct request *request, unsigned connections_open,
                      unsigned connections_accepted)
{
    const char *path = request->path;
    bool post = strcmp(request->method, "POST") == 0, get = strcmp(request->method, "GET") == 0;
    if (strcmp(path, "/_counts") == 0)
        return json_page(200, "", counts_page(connections_open, connections_accepted));
    if (strcmp(path, "/_answered") == 0)
        return json_page(200, "", answered_page());
    if (strcmp(path, "/_release") == 0) {
        batch_release();
        return json_page(200, "", json_object());
    }
    counts.requests++;
    note_key(request);
    const struct format *format = starts(path, "/v1beta/") ? &format_gemini
                                  : starts(path, "/v1/messages") || is_anthropic(request)
                                      ? &format_anthropic
                                  : starts(path, "/v1/responses") ? &format_responses
                                                                  : &format_openai;
    if (!key_fits(request, format))
        return wrong_key(format);
    struct response of_batch;
    if (batch_route(request, format, &of_batch))
        return of_batch;
    if (post && (strcmp(path, "/v1/chat/completions") == 0 || strcmp(path, "/v1/messages") == 0 ||
                 strcmp(path, "/v1/responses") == 0))
        return respond_chat(format, request);
    if (post && strcmp(path, "/v1/embeddings") == 0)
        return respond_chat(&format_embeddings, request);
    if (post && starts(path, "/v1beta/models/") &&
        (strstr(path, ":generateContent") != NULL ||
         strstr(path, ":streamGenerateContent") != NULL))
        return respond_chat(format, request);
    if (get && (strcmp(path, "/v1/models") == 0 || strcmp(path, "/v1beta/models") == 0))
        return respond_models(format);
    if (get && starts(path, "/v1/models/"))
        return respond_model(format, path + strlen("/v1/models/"));
    if (get && starts(path, "/v1beta/models/"))
        return respond_model(format, path + strlen("/v1beta/models/"));
    return not_found(format, request);
}
