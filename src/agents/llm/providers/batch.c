/* https://developers.openai.com/api/docs/guides/batch and .../api/reference/resources/batches;
 * https://platform.claude.com/docs/en/api/messages/batches; https://ai.google.dev/api/batch-api
 *
 * One request of a batch has the body that it would have by itself, but for the stream. */
#include "agents/llm/providers/batch.h"

#include "agents/llm/providers/fault.h"
#include "agents/llm/providers/request.h"
#include "base/json.h"

#include <ctype.h>
#include <string.h>

enum { BODY_MOST = 16 << 20, REASON_MOST = 400, ID_MOST = 200 };

/* ---- requests ---- */

static void put_body(struct arena *arena, const struct batch_place *place,
                     const struct batch_item *item, struct json *json)
{
    struct completion_request request = *item->request;
    const char *url;
    const char *const *headers;
    BUF_LOCAL(body, BODY_MOST);
    request.whole = true;
    place->codec->encode(arena, &request, place->base_url, place->key, &url, &headers, &body);
    json_raw(json, buf_text(&body));
}

static const char *endpoint_of(const struct batch_place *place)
{
    return place->codec == &codec_responses ? "/v1/responses" : "/v1/chat/completions";
}

/* A file of lines as one part of a form. No line can have the boundary in it: it begins with "{".
 */
static void openai_put(struct arena *arena, const struct batch_place *place,
                       const struct batch_item *items, size_t count, struct buf *out)
{
    buf_addf(out,
             "--%s\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
             "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s.jsonl\"\r\n"
             "Content-Type: application/jsonl\r\n\r\n",
             place->name, place->name, place->name);
    for (size_t i = 0; i < count; i++) {
        struct json json = {.out = out};
        json_object(&json);
        json_put_text(&json, "custom_id", items[i].id);
        json_put_text(&json, "method", "POST");
        json_put_text(&json, "url", endpoint_of(place));
        json_key(&json, "body");
        put_body(arena, place, &items[i], &json);
        json_object_end(&json);
        buf_add_char(out, '\n');
    }
    buf_addf(out, "\r\n--%s--\r\n", place->name);
}

void batch_put_create(const struct batch_place *place, const char *file, struct buf *out)
{
    struct json json = {.out = out};
    json_object(&json);
    json_put_text(&json, "input_file_id", file);
    json_put_text(&json, "endpoint", endpoint_of(place));
    json_put_text(&json, "completion_window", "24h");
    json_put_object(&json, "metadata");
    json_put_text(&json, "twagent", place->name);
    json_object_end(&json);
    json_object_end(&json);
}

static void anthropic_put(struct arena *arena, const struct batch_place *place,
                          const struct batch_item *items, size_t count, struct buf *out)
{
    struct json json = {.out = out};
    json_object(&json);
    json_put_array(&json, "requests");
    for (size_t i = 0; i < count; i++) {
        json_object(&json);
        json_put_text(&json, "custom_id", items[i].id);
        json_key(&json, "params");
        put_body(arena, place, &items[i], &json);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
}

static void gemini_put(struct arena *arena, const struct batch_place *place,
                       const struct batch_item *items, size_t count, struct buf *out)
{
    struct json json = {.out = out};
    json_object(&json);
    json_put_object(&json, "batch");
    json_put_text(&json, "displayName", place->name);
    json_put_object(&json, "inputConfig");
    json_put_object(&json, "requests");
    json_put_array(&json, "requests");
    for (size_t i = 0; i < count; i++) {
        json_object(&json);
        json_key(&json, "request");
        put_body(arena, place, &items[i], &json);
        json_put_object(&json, "metadata");
        json_put_text(&json, "key", items[i].id);
        json_object_end(&json);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
}

/* ---- addresses ---- */

static const char *openai_path(struct arena *arena, const struct batch_place *place,
                               enum batch_step step, const char *what)
{
    (void)place;
    switch (step) {
    case BATCH_UPLOAD:
        return "files";
    case BATCH_CREATE:
        return "batches";
    case BATCH_LOOK:
        return arena_printf(arena, "batches/%s", what);
    case BATCH_FETCH:
        return arena_printf(arena, "files/%s/content", what);
    case BATCH_CANCEL:
        return arena_printf(arena, "batches/%s/cancel", what);
    default:
        return "batches?limit=100";
    }
}

static const char *anthropic_path(struct arena *arena, const struct batch_place *place,
                                  enum batch_step step, const char *what)
{
    static const char *const after[] = {[BATCH_FETCH] = "/results", [BATCH_CANCEL] = "/cancel"};
    (void)place;
    if (step == BATCH_CREATE || step == BATCH_LIST)
        return "messages/batches";
    return arena_printf(arena, "messages/batches/%s%s", what,
                        step == BATCH_FETCH || step == BATCH_CANCEL ? after[step] : "");
}

/* A batch's id begins with "batches/". */
static const char *gemini_path(struct arena *arena, const struct batch_place *place,
                               enum batch_step step, const char *what)
{
    const char *model = place->model;
    if (step == BATCH_LIST)
        return "batches?pageSize=100";
    if (step != BATCH_CREATE)
        return step == BATCH_CANCEL ? arena_printf(arena, "%s:cancel", what) : what;
    return arena_printf(
        arena, "models/%s:batchGenerateContent",
        request_escape(arena, strncmp(model, "models/", 7) == 0 ? model + 7 : model));
}

struct batch_call batch_call_of(struct arena *arena, const struct batch_place *place,
                                enum batch_step step, const char *what)
{
    const struct batch_format *format = batch_format_of(place->codec);
    const char *version = place->codec == &codec_anthropic ? "v1"
                          : place->codec == &codec_gemini  ? "v1beta"
                                                           : NULL;
    const char *ignored, *type = NULL;
    const char *const *own;
    bool posts = step == BATCH_UPLOAD || step == BATCH_CREATE || step == BATCH_CANCEL;
    size_t count = 0;
    place->codec->describe(arena, place->model, place->base_url, place->key, &ignored, &own);
    while (own[count] != NULL)
        count++;
    if (step == BATCH_UPLOAD)
        type = arena_printf(arena, "content-type: multipart/form-data; boundary=%s", place->name);
    else if (posts)
        type = "content-type: application/json";
    const char **headers = (const char **)arena_array(arena, count + 2, sizeof *headers);
    memcpy(headers, own, count * sizeof *headers);
    headers[count] = type;
    return (struct batch_call){
        .method = posts ? "POST" : "GET",
        .url = request_url(arena, place->base_url, version, format->path(arena, place, step, what)),
        .headers = headers};
}

/* ---- what a batch is ---- */

static void fail(struct arena *arena, struct batch_view *view, const struct value *error,
                 int64_t status)
{
    BUF_LOCAL(reason, REASON_MOST);
    fault_add_text(&reason, *fault_message(error) ? fault_message(error) : "the batch failed");
    view->fault = fault_of_error(error, status);
    view->reason = arena_strdup(arena, buf_text(&reason));
}

static const struct value *first_of(const struct value *list)
{
    return list != NULL && list->kind == VALUE_LIST && list->count > 0 ? list->items[0] : NULL;
}

static void openai_view(struct arena *arena, const struct value *object, struct batch_view *view)
{
    static const struct value unknown = {.kind = VALUE_NULL};
    const struct value *counts = value_get(object, "request_counts");
    const char *status = value_text(object, "status", "");
    view->id = value_text(object, "id", "");
    view->name = value_text(value_get(object, "metadata"), "twagent", "");
    view->total = value_int(counts, "total", 0);
    view->done = value_int(counts, "completed", 0) + value_int(counts, "failed", 0);
    view->left = strcmp(status, "expired") == 0     ? "expired"
                 : strcmp(status, "cancelled") == 0 ? "cancelled"
                                                    : NULL;
    view->ended = view->left != NULL || strcmp(status, "completed") == 0;
    view->sources[0] = value_text(object, "output_file_id", NULL);
    view->sources[1] = value_text(object, "error_file_id", NULL);
    if (strcmp(status, "failed") != 0)
        return;
    const struct value *error = first_of(value_at(object, "errors.data"));
    view->ended = true;
    fail(arena, view, error != NULL ? error : &unknown, 400);
    if (strstr(value_text(error, "code", ""), "token_limit") != NULL) /* of all batches at once */
        view->fault = FAULT_LIMITED;
}

static void anthropic_view(struct arena *arena, const struct value *object, struct batch_view *view)
{
    static const char *const ends[] = {"succeeded", "errored", "canceled", "expired"};
    const struct value *counts = value_get(object, "request_counts");
    (void)arena;
    view->id = value_text(object, "id", "");
    view->ended = strcmp(value_text(object, "processing_status", ""), "ended") == 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        view->done += value_int(counts, ends[i], 0);
    view->total = view->done + value_int(counts, "processing", 0);
    if (view->ended)
        view->sources[0] = view->id;
}

/* "BATCH_STATE_EXPIRED", "JOB_STATE_EXPIRED" */
static bool is_state(const char *state, const char *wanted)
{
    size_t length = strlen(state), most = strlen(wanted);
    return length > most && strcmp(state + length - most, wanted) == 0;
}

/* Counts are texts here. */
static int64_t count_of(const struct value *stats, const char *key)
{
    const char *text = value_text(stats, key, NULL);
    int64_t count = value_int(stats, key, 0);
    for (; text != NULL && isdigit((unsigned char)*text) && count < INT64_MAX / 100; text++)
        count = 10 * count + (*text - '0');
    return count;
}

/* The list lies in a list's object, and that in the answer or in the batch itself. */
static const struct value *inlined(const struct value *holder)
{
    const struct value *list = value_get(holder, "inlinedResponses");
    return list != NULL && list->kind == VALUE_MAP ? value_get(list, "inlinedResponses") : list;
}

static void gemini_view(struct arena *arena, const struct value *object, struct batch_view *view)
{
    const struct value *batch = value_get(object, "metadata");
    const struct value *error = value_get(object, "error");
    if (batch == NULL)
        batch = object;
    const char *state = value_text(batch, "state", "");
    const struct value *stats = value_get(batch, "batchStats");
    view->id = value_text(object, "name", value_text(batch, "name", ""));
    view->name = value_text(batch, "displayName", "");
    view->total = count_of(stats, "requestCount");
    view->done = count_of(stats, "successfulRequestCount") + count_of(stats, "failedRequestCount");
    view->left = is_state(state, "_EXPIRED")     ? "expired"
                 : is_state(state, "_CANCELLED") ? "cancelled"
                                                 : NULL;
    view->results = inlined(value_get(object, "response"));
    if (view->results == NULL)
        view->results = inlined(value_get(batch, "output"));
    bool failed = is_state(state, "_FAILED");
    view->ended = view->left != NULL || failed || is_state(state, "_SUCCEEDED") ||
                  value_bool(object, "done", false);
    if (failed && view->results == NULL)
        fail(arena, view, error != NULL ? error : object, 0);
}

/* An id stands in addresses, and begins none of its own. */
static bool is_id(const char *id)
{
    size_t length = strlen(id);
    for (const char *at = id; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("-_/.", *at) == NULL)
            return false;
    return length > 0 && length <= ID_MOST && *id != '/' && strstr(id, "..") == NULL;
}

int batch_read_view(struct arena *arena, const struct batch_place *place, const struct value *root,
                    struct batch_view *view, struct err *err)
{
    *view = (struct batch_view){.id = "", .name = "", .reason = ""};
    batch_format_of(place->codec)->view(arena, root, view);
    bool fits =
        is_id(view->id) && (place->codec != &codec_gemini || strncmp(view->id, "batches/", 8) == 0);
    for (size_t i = 0; i < BATCH_SOURCES; i++)
        fits = fits && (view->sources[i] == NULL || is_id(view->sources[i]));
    return fits ? 0 : err_set(err, ERR_PROTOCOL, "that is no batch");
}

const struct value *batch_find(struct arena *arena, const struct batch_place *place,
                               const struct value *root)
{
    const struct value *list = value_get(root, "data");
    struct err ignored;
    if (list == NULL)
        list = value_get(root, "operations");
    for (size_t i = 0; list != NULL && list->kind == VALUE_LIST && i < list->count; i++) {
        struct batch_view view;
        if (batch_read_view(arena, place, list->items[i], &view, &ignored) == 0 &&
            strcmp(view.name, place->name) == 0)
            return list->items[i];
    }
    return NULL;
}

/* ---- what became of one request ---- */

static void refuse(struct arena *arena, struct batch_result *result, const struct value *error,
                   int64_t status)
{
    BUF_LOCAL(reason, REASON_MOST);
    result->fault = fault_of_error(error, status);
    fault_add_text(&reason, result->fault == FAULT_KEY ? "the key is refused"
                            : *fault_message(error)    ? fault_message(error)
                                                       : "an error without words");
    result->reason = arena_strdup(arena, buf_text(&reason));
}

static void openai_result(struct arena *arena, const struct value *object,
                          struct batch_result *result)
{
    const struct value *response = value_get(object, "response");
    const struct value *body = value_get(response, "body"), *error = value_get(object, "error");
    int64_t status = value_int(response, "status_code", 0);
    result->id = value_text(object, "custom_id", "");
    if (error == NULL || error->kind != VALUE_MAP)
        error = value_get(body, "error");
    if (status == 200 && body != NULL)
        result->answer = body;
    else if (error != NULL && strncmp(value_text(error, "code", ""), "batch_", 6) == 0)
        result->reason = value_text(error, "code", "") + 6; /* expired, cancelled */
    else if (error != NULL)
        refuse(arena, result, error, status);
}

static void anthropic_result(struct arena *arena, const struct value *object,
                             struct batch_result *result)
{
    const struct value *end = value_get(object, "result"), *error = value_get(end, "error");
    const char *type = value_text(end, "type", "");
    result->id = value_text(object, "custom_id", "");
    result->answer = strcmp(type, "succeeded") == 0 ? value_get(end, "message") : NULL;
    if (strcmp(type, "canceled") == 0 || strcmp(type, "expired") == 0)
        result->reason = type;
    else if (error != NULL)
        refuse(arena, result, value_get(error, "error") ? value_get(error, "error") : error, 0);
}

/* An error has a number of gRPC's. */
static void gemini_result(struct arena *arena, const struct value *object,
                          struct batch_result *result)
{
    static const int64_t status_of[] = {0,   499, 500, 400, 504, 404, 409, 403, 429,
                                        400, 409, 400, 501, 500, 503, 500, 401};
    const struct value *error = value_get(object, "error");
    result->id = value_text(value_get(object, "metadata"), "key", "");
    result->answer = error == NULL ? value_get(object, "response") : NULL;
    int64_t code = value_int(error, "code", 0);
    bool known = code > 0 && code < (int64_t)(sizeof status_of / sizeof *status_of);
    if (error != NULL)
        refuse(arena, result, error, known ? status_of[code] : code);
}

/* ---- all ---- */

static const struct batch_format openai = {.uploads = true,
                                           .named = true,
                                           .requests_most = 50000,
                                           .bytes_most = 190 << 20,
                                           .put = openai_put,
                                           .path = openai_path,
                                           .view = openai_view,
                                           .result = openai_result};
static const struct batch_format anthropic = {.requests_most = 10000,
                                              .bytes_most = 240 << 20,
                                              .put = anthropic_put,
                                              .path = anthropic_path,
                                              .view = anthropic_view,
                                              .result = anthropic_result};
static const struct batch_format gemini = {.named = true,
                                           .requests_most = 10000,
                                           .bytes_most = 19 << 20,
                                           .put = gemini_put,
                                           .path = gemini_path,
                                           .view = gemini_view,
                                           .result = gemini_result};

const struct batch_format *batch_format_of(const struct codec *codec)
{
    return codec == &codec_openai || codec == &codec_responses ? &openai
           : codec == &codec_anthropic                         ? &anthropic
           : codec == &codec_gemini                            ? &gemini
                                                               : NULL;
}
