/* fake_provider: batches of requests, as OpenAI, Anthropic and Gemini have them. Each request meets
 * the script's next fault, as one that came by itself would: a status is an error in its result,
 * "stall" lets it expire, what breaks a connection loses its result. Results come in reverse.
 *
 * What happens to a batch's own requests is said by --batch "STEP FAULT", STEP one of upload,
 * create, look, fetch, cancel, list, end: a fault of the script; "close" at create: it was made,
 * and nobody hears of it; at end "stall" (it never ends by itself), "pings" (not before /_release
 * was asked for) and "error code=N" (all of it fails). A batch has ended when it was looked at
 * --batch-looks times; at its cancel half of it is done. */
#include "fake_provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES_MOST = 256, UPLOADS_MOST = 256 };

static struct batch {
    const struct format *format;
    char id[64], name[128];
    json_t
        *requests; /* as they came: {custom_id, url, body}, {custom_id, params}, {metadata, ...} */
    json_t *results, *errors;
    long looks, error;
    bool ended, cancelled, never, held;
    size_t done;
} batches[BATCHES_MOST];
static size_t batch_count, upload_count;
static char *uploads[UPLOADS_MOST];
static const struct options *options;
static bool released;

void batch_release(void)
{
    released = true;
}

void batch_init(const struct options *given)
{
    options = given;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const json_t *at(const json_t *object, const char *first, const char *second)
{
    const json_t *inner = json_object_get(object, first);
    return second != NULL ? json_object_get(inner, second) : inner;
}

static const char *text_at(const json_t *object, const char *first, const char *second)
{
    const char *text = json_string_value(at(object, first, second));
    return text != NULL ? text : "";
}

/* --- results --- */

static const json_t *body_of(const struct batch *batch, const json_t *item)
{
    return json_object_get(item, batch->format == &format_anthropic ? "params"
                                 : batch->format == &format_gemini  ? "request"
                                                                    : "body");
}

static const char *id_of(const struct batch *batch, const json_t *item)
{
    return batch->format == &format_gemini ? text_at(item, "metadata", "key")
                                           : text_at(item, "custom_id", NULL);
}

/* A page's document and status; NULL where there is none. */
static json_t *read_page(const struct response *response, long *status)
{
    const char *text = response->bytes->data, *head_end;
    size_t length = response->bytes->length;
    *status = 0;
    if (length < 16 || response->ending != END_KEEP ||
        (head_end = memmem(text, length, "\r\n\r\n", 4)) == NULL)
        return NULL;
    *status = strtol(text + 9, NULL, 10);
    const char *body = head_end + 4;
    return json_loadb(body, length - (size_t)(body - text), 0, NULL);
}

static json_t *result_of(const struct batch *batch, const char *id, json_t *document, long status)
{
    bool good = status == 200;
    if (batch->format == &format_anthropic)
        return good ? json_pack("{s:s,s:{s:s,s:o}}", "custom_id", id, "result", "type", "succeeded",
                                "message", document)
                    : json_pack("{s:s,s:{s:s,s:o}}", "custom_id", id, "result", "type", "errored",
                                "error", document);
    if (batch->format == &format_gemini) {
        json_t *error = json_incref(json_object_get(document, "error"));
        json_t *result =
            good ? json_pack("{s:O,s:{s:s}}", "response", document, "metadata", "key", id)
                 : json_pack("{s:O,s:{s:s}}", "error", error, "metadata", "key", id);
        json_decref(error);
        json_decref(document);
        return result;
    }
    return json_pack("{s:s,s:s,s:{s:i,s:s,s:o},s:n}", "id", "batch_req_fake", "custom_id", id,
                     "response", "status_code", (int)status, "request_id", "req", "body", document,
                     "error");
}

static json_t *unanswered(const struct batch *batch, const char *id, const char *word)
{
    char code[32];
    if (batch->format == &format_anthropic)
        return json_pack("{s:s,s:{s:s}}", "custom_id", id, "result", "type",
                         strcmp(word, "cancelled") == 0 ? "canceled" : word);
    if (batch->format == &format_gemini)
        return NULL;
    snprintf(code, sizeof code, "batch_%s", word);
    return json_pack("{s:s,s:n,s:{s:s,s:s}}", "custom_id", id, "response", "error", "code", code,
                     "message", "This request could not be executed.");
}

static void answer_item(struct batch *batch, const json_t *item)
{
    struct request request = {.method = "POST",
                              .path = batch->format == &format_gemini ? ":generateContent" : "",
                              .headers = "anthropic-version: 2023-06-01\r\n"};
    struct chat chat = {.format = batch->format, .answer = batch->done};
    const json_t *body = body_of(batch, item);
    const char *id = id_of(batch, item);
    char *text = json_dumps(body, JSON_COMPACT);
    long status = 400;
    chat.hash = bytes_hash(0, text, strlen(text));
    struct tally *tally = tally_of(batch->format, "batch", chat.hash);
    unsigned attempt = tally_request(tally);
    const char *wrong = batch->format->read(body, &request, &chat);
    if (chat.stream)
        wrong = "no streams in a batch";
    counts.chats++;
    free(text);
    const struct fault *fault = script_next(&chat, attempt);
    json_t *document = NULL;
    if (wrong != NULL) {
        document = batch->format->error(400, "");
    } else {
        struct response response = fault->type->respond(fault, &chat);
        document = read_page(&response, &status);
        bytes_release(response.bytes);
    }
    counts.faults += fault->type != &fault_types[0];
    if (document != NULL && status == 200)
        tally_answered(tally);
    json_t *result = document != NULL ? result_of(batch, id, document, status)
                     : strcmp(fault->type->name, "stall") == 0 ? unanswered(batch, id, "expired")
                                                               : NULL;
    bool error = status != 200 && batch->format == &format_openai;
    if (result != NULL)
        json_array_insert_new(error ? batch->errors : batch->results, 0, result);
    free(chat.text);
    batch->done++;
}

static void end_batch(struct batch *batch)
{
    size_t index, half = (json_array_size(batch->requests) + 1) / 2;
    json_t *item;
    batch->ended = true;
    json_array_foreach(batch->requests, index, item)
    {
        json_t *left = batch->cancelled && index >= half
                           ? unanswered(batch, id_of(batch, item), "cancelled")
                           : NULL;
        if (batch->error != 0)
            continue;
        if (!batch->cancelled || index < half)
            answer_item(batch, item);
        else if (left != NULL)
            json_array_append_new(batch->errors, left);
    }
}

/* --- the batch as its provider shows it --- */

static json_t *show_openai(const struct batch *batch)
{
    char output[80], errors[80];
    const char *status = batch->error       ? "failed"
                         : !batch->ended    ? "in_progress"
                         : batch->cancelled ? "cancelled"
                                            : "completed";
    snprintf(output, sizeof output, "file-out-%s", batch->id);
    snprintf(errors, sizeof errors, "file-err-%s", batch->id);
    json_t *shown = json_pack("{s:s,s:s,s:s,s:{s:i,s:i,s:i},s:{s:s}}", "id", batch->id, "object",
                              "batch", "status", status, "request_counts", "total",
                              (int)json_array_size(batch->requests), "completed", (int)batch->done,
                              "failed", 0, "metadata", "twagent", batch->name);
    if (batch->ended && json_array_size(batch->results) > 0)
        json_object_set_new(shown, "output_file_id", json_string(output));
    if (batch->ended && json_array_size(batch->errors) > 0)
        json_object_set_new(shown, "error_file_id", json_string(errors));
    if (batch->error)
        json_object_set_new(shown, "errors",
                            json_pack("{s:[o]}", "data",
                                      json_incref(json_object_get(
                                          batch->format->error(batch->error, ""), "error"))));
    return shown;
}

static json_t *show_anthropic(const struct batch *batch)
{
    int total = (int)json_array_size(batch->requests);
    return json_pack("{s:s,s:s,s:s,s:{s:i,s:i,s:i,s:i,s:i}}", "id", batch->id, "type",
                     "message_batch", "processing_status",
                     batch->ended       ? "ended"
                     : batch->cancelled ? "canceling"
                                        : "in_progress",
                     "request_counts", "processing", batch->ended ? 0 : total, "succeeded",
                     (int)batch->done, "errored", 0, "canceled",
                     batch->ended ? total - (int)batch->done : 0, "expired", 0);
}

static json_t *show_gemini(const struct batch *batch)
{
    char total[24];
    const char *state = batch->error       ? "BATCH_STATE_FAILED"
                        : !batch->ended    ? "BATCH_STATE_RUNNING"
                        : batch->cancelled ? "BATCH_STATE_CANCELLED"
                                           : "BATCH_STATE_SUCCEEDED";
    snprintf(total, sizeof total, "%zu", json_array_size(batch->requests));
    json_t *shown = json_pack("{s:s,s:{s:s,s:s,s:s,s:{s:s}},s:b}", "name", batch->id, "metadata",
                              "name", batch->id, "displayName", batch->name, "state", state,
                              "batchStats", "requestCount", total, "done", batch->ended);
    if (batch->error)
        json_object_set_new(
            shown, "error",
            json_incref(json_object_get(batch->format->error(batch->error, ""), "error")));
    else if (batch->ended)
        json_object_set_new(
            shown, "response",
            json_pack("{s:{s:O}}", "inlinedResponses", "inlinedResponses", batch->results));
    return shown;
}

static json_t *show(const struct batch *batch)
{
    return batch->format == &format_anthropic ? show_anthropic(batch)
           : batch->format == &format_gemini  ? show_gemini(batch)
                                              : show_openai(batch);
}

/* --- steps --- */

static struct response wrong(const struct format *format, long code)
{
    counts.refused++;
    return json_page(code, "", format->error(code, ""));
}

/* The file is a form's last part. */
static struct response upload(const struct request *request)
{
    const char *end = request->body + request->body_length, *from = request->body;
    char id[32];
    for (int part = 0; part < 2 && from != NULL; part++) {
        from = memmem(from, (size_t)(end - from), "\r\n\r\n", 4);
        from = from != NULL ? from + 4 : NULL;
    }
    const char *stop = from != NULL ? memmem(from, (size_t)(end - from), "\r\n--", 4) : NULL;
    if (stop == NULL || upload_count == UPLOADS_MOST)
        return wrong(&format_openai, 400);
    snprintf(id, sizeof id, "file-in-%zu", upload_count);
    uploads[upload_count++] = strndup(from, (size_t)(stop - from));
    return json_page(200, "",
                     json_pack("{s:s,s:s,s:s}", "id", id, "object", "file", "purpose", "batch"));
}

static json_t *lines_of(const char *text)
{
    json_t *list = json_array();
    for (const char *end; *text != '\0'; text = *end != '\0' ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        json_t *line = json_loadb(text, (size_t)(end - text), 0, NULL);
        if (line != NULL)
            json_array_append_new(list, line);
    }
    return list;
}

static struct response create(const struct format *format, const json_t *document,
                              struct response *given)
{
    struct batch *batch = &batches[batch_count];
    *batch = (struct batch){.format = format, .results = json_array(), .errors = json_array()};
    const char *kind = format == &format_anthropic ? "msgbatch_"
                       : format == &format_gemini  ? "batches/"
                                                   : "batch_";
    snprintf(batch->id, sizeof batch->id, "%sfake%zu", kind, batch_count);
    if (format == &format_anthropic) {
        batch->requests = json_incref(json_object_get(document, "requests"));
    } else if (format == &format_gemini) {
        const json_t *config = at(document, "batch", "inputConfig");
        snprintf(batch->name, sizeof batch->name, "%s", text_at(document, "batch", "displayName"));
        batch->requests = json_incref((json_t *)(uintptr_t)at(config, "requests", "requests"));
    } else {
        const char *file = text_at(document, "input_file_id", NULL);
        size_t number = starts(file, "file-in-") ? strtoul(file + 8, NULL, 10) : UPLOADS_MOST;
        snprintf(batch->name, sizeof batch->name, "%s", text_at(document, "metadata", "twagent"));
        batch->requests = number < upload_count ? lines_of(uploads[number]) : NULL;
        if (batch->requests != NULL &&
            strcmp(text_at(json_array_get(batch->requests, 0), "url", NULL),
                   text_at(document, "endpoint", NULL)) != 0)
            return wrong(format, 400);
        if (strcmp(text_at(document, "endpoint", NULL), "/v1/responses") == 0)
            batch->format = &format_responses;
    }
    if (json_array_size(batch->requests) == 0 || batch_count == BATCHES_MOST - 1)
        return wrong(format, 400);
    const struct fault *fate = script_batch("end");
    batch->never = strcmp(fate->type->name, "stall") == 0;
    batch->held = strcmp(fate->type->name, "pings") == 0;
    batch->error = strcmp(fate->type->name, "error") == 0 ? fate->code : 0;
    batch_count++;
    counts.batches++;
    if (given != NULL) /* made, but not told */
        return *given;
    return json_page(200, "", show(batch));
}

static struct batch *find(const char *id, size_t length)
{
    for (size_t i = 0; i < batch_count; i++)
        if (strlen(batches[i].id) == length && strncmp(batches[i].id, id, length) == 0)
            return &batches[i];
    return NULL;
}

static struct response look(struct batch *batch)
{
    bool over =
        ++batch->looks >= options->batch_looks && !batch->never && (released || !batch->held);
    if (!batch->ended && (over || batch->cancelled))
        end_batch(batch);
    return json_page(200, "", show(batch));
}

static struct response fetch(const json_t *list, const json_t *more)
{
    struct bytes *text = bytes_new();
    for (int i = 0; i < 2; i++) {
        size_t index;
        json_t *item;
        json_array_foreach(i == 0 ? list : more, index, item)
        {
            char *line = json_dumps(item, JSON_COMPACT);
            bytes_addf(text, "%s\n", line);
            free(line);
        }
    }
    struct response response = {.bytes =
                                    page(200, "application/x-jsonl", "", text->data, text->length)};
    bytes_release(text);
    return response;
}

static struct response list_batches(const struct format *format)
{
    json_t *list = json_array();
    for (size_t i = batch_count; i-- > 0;)
        if (batches[i].format->key_header == format->key_header)
            json_array_append_new(list, show(&batches[i]));
    return json_page(200, "",
                     json_pack("{s:o}", format == &format_gemini ? "operations" : "data", list));
}

/* --- paths --- */

static const char *step_of(const struct request *request, const struct format *format)
{
    const char *path = request->path;
    bool post = strcmp(request->method, "POST") == 0;
    if (strstr(path, ":batchGenerateContent") != NULL)
        return "create";
    if (strstr(path, ":cancel") != NULL || strstr(path, "/cancel") != NULL)
        return "cancel";
    if (starts(path, "/v1/files"))
        return post ? "upload" : "fetch";
    if (strstr(path, "/results") != NULL)
        return "fetch";
    const char *batches_at = strstr(path, "/batches");
    if (batches_at == NULL)
        return NULL;
    if (batches_at[8] == '/')
        return "look";
    (void)format;
    return post ? "create" : "list";
}

bool batch_route(const struct request *request, const struct format *format,
                 struct response *response)
{
    static char nothing[] = "";
    const char *step = step_of(request, format);
    if (step == NULL)
        return false;
    const struct fault *fault = script_batch(step);
    struct chat chat = {.format = format, .text = nothing};
    bool told = strcmp(step, "create") == 0 && strcmp(fault->type->name, "close") == 0;
    struct response faulty = {0};
    if (fault->type != &fault_types[0]) {
        faulty = fault->type->respond(fault, &chat);
        counts.faults++;
    }
    *response = faulty;
    if (fault->type != &fault_types[0] && !told)
        return true;
    json_t *document = json_loadb(request->body, request->body_length, 0, NULL);
    const char *id = strstr(request->path, "batches/");
    id = id == NULL ? "" : format == &format_gemini ? id : id + 8;
    struct batch *batch =
        find(id, strcspn(id, ":/?") == 7 && format == &format_gemini ? 8 + strcspn(id + 8, ":/?")
                                                                     : strcspn(id, ":/?"));
    const char *file = strstr(request->path, "batch_");
    struct batch *of_file =
        starts(request->path, "/v1/files/") && file ? find(file, strcspn(file, "/")) : NULL;
    if (strcmp(step, "upload") == 0)
        *response = upload(request);
    else if (strcmp(step, "create") == 0)
        *response = create(format, document, told ? &faulty : NULL);
    else if (strcmp(step, "list") == 0)
        *response = list_batches(format);
    else if (of_file != NULL)
        *response = strstr(request->path, "file-out-") ? fetch(of_file->results, NULL)
                                                       : fetch(of_file->errors, NULL);
    else if (batch == NULL)
        *response = wrong(format, 404);
    else if (strcmp(step, "cancel") == 0)
        batch->cancelled = true, *response = json_page(200, "", show(batch));
    else if (strcmp(step, "fetch") == 0)
        *response = fetch(batch->results, batch->errors);
    else
        *response = look(batch);
    json_decref(document);
    return true;
}
