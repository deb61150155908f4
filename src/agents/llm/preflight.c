/*            the model's own address            the list, one part up
 *   OWN -----------------------------------> LIST ------------------> OVER
 *    |   it is there, or what came says enough                          ^
 *    +------------------------------------------------------------------+
 *
 * One task for all: each item has its request, and the task is woken by any. */
#include "agents/llm/preflight.h"

#include "agents/llm/key_command.h"
#include "agents/llm/providers/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/value.h"
#include "loop/http.h"
#include "loop/loop.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_BYTE_MS = 20 * 1000, TOTAL_MS = 30 * 1000, BODY_MAX = 8 << 20, NAMES_SHOWN = 5 };

enum phase { OWN, LIST, OVER };

struct item {
    const struct model *model;
    enum phase phase;
    struct http_request *http;
    const char *url;
    const char *const *headers;
    enum fault fault; /* of the model's own address: FAULT_MODEL: it says there is none */
    struct err err;   /* what is wrong; ERR_NONE */
};

struct preflight {
    struct task task;
    struct http *http;
    struct arena *arena;
    const char *ca_file;
    struct item *items;
    size_t count;
    struct err err;
};

/* ---- what is said ---- */

static void end_item(struct item *item)
{
    http_free_request(item->http);
    item->http = NULL;
    item->phase = OVER;
}

static void fail(struct item *item, enum err_code code, const char *words)
{
    const struct model *model = item->model;
    err_set(&item->err, code, "%s (%s): %.300s", model->name,
            model->where != NULL ? model->where : model->provider, words);
    model_hide_key(model, item->err.message);
    end_item(item);
}

static void warn(struct item *item, const char *words)
{
    char text[400];
    snprintf(text, sizeof text, "%s: %.300s", item->model->name, words);
    model_hide_key(item->model, text);
    log_event(LOG_WARN, "provider.unsure", item->model->provider, "%s", text);
    end_item(item);
}

/* ---- asking ---- */

static void ask(struct preflight *preflight, struct item *item, enum phase phase)
{
    struct err err;
    const struct http_spec spec = {.method = "GET",
                                   .url = item->url,
                                   .headers = item->headers,
                                   .first_byte_ms = FIRST_BYTE_MS,
                                   .total_ms = TOTAL_MS,
                                   .body_max = BODY_MAX,
                                   .ca_file = preflight->ca_file};
    http_free_request(item->http);
    item->phase = phase;
    item->http = http_start(preflight->http, &preflight->task, &spec, &err);
    if (item->http == NULL)
        fail(item, ERR_USAGE, err.message);
}

/* The model's address without its last part lists them all. */
static void ask_list(struct preflight *preflight, struct item *item)
{
    size_t length = strcspn(item->url, "?#");
    const char *query = item->url + length;
    while (length > 0 && item->url[length - 1] != '/')
        length--;
    item->url = arena_printf(preflight->arena, "%.*s%s", (int)(length > 0 ? length - 1 : 0),
                             item->url, query);
    ask(preflight, item, LIST);
}

/* ---- judging ---- */

/* True where the network's word decides. */
static bool judge_network(struct item *item)
{
    const struct err *err = http_error(item->http);
    if (err->code == ERR_NONE)
        return false;
    char words[400];
    snprintf(words, sizeof words, "%.380s", err->message);
    if (http_error_is_tls(item->http) || http_error_is_unresolved(item->http))
        fail(item, ERR_ENVIRONMENT, words);
    else
        warn(item, words);
    return true;
}

static bool is_html(struct item *item)
{
    size_t length;
    const char *body = http_body(item->http, &length);
    size_t blank = strspn(body, " \t\r\n");
    return strstr(http_header(item->http, "content-type"), "html") != NULL ||
           (blank < length && body[blank] == '<');
}

static void judge_fault(struct item *item, enum fault fault, const char *reason)
{
    switch (fault) {
    case FAULT_KEY: {
        char words[200];
        snprintf(words, sizeof words, "%.100s: the key%s%.60s is refused", reason,
                 item->model->key_variable != NULL ? " in " : "",
                 item->model->key_variable != NULL ? item->model->key_variable : "");
        fail(item, ERR_ENVIRONMENT, words);
        return;
    }
    case FAULT_MODEL:
        fail(item, ERR_USAGE, reason);
        return;
    default:
        warn(item, reason);
    }
}

static void judge_own(struct preflight *preflight, struct item *item)
{
    const struct codec *codec = item->model->codec;
    int status = http_status(item->http);
    size_t length;
    char words[400];
    const char *body = http_body(item->http, &length);
    if (status >= 300 && status < 400) {
        snprintf(words, sizeof words,
                 "HTTP %d to %.200s: a redirect is not followed, since it would "
                 "take the key along; is the base URL right?",
                 status, http_header(item->http, "location"));
        fail(item, ERR_USAGE, words);
        return;
    }
    if (status == 200 && is_html(item)) {
        fail(item, ERR_USAGE, "the answer is HTML; is the base URL right?");
        return;
    }
    BUF_LOCAL(reason, 300);
    enum fault fault = codec->describe != NULL
                           ? fault_described(item->model->wire_name, status, body, length, &reason)
                       : status == 200 ? FAULT_NONE
                                       : fault_classify(status, body, length, &reason);
    item->fault = fault;
    if (status == 404)
        ask_list(preflight, item);
    else if (fault == FAULT_NONE)
        end_item(item);
    else
        judge_fault(item, fault, buf_text(&reason));
}

/* ---- the list ---- */

struct names {
    const char **items; /* ended by NULL */
    size_t count;
    bool whole; /* no further pages */
};

/* {"data": [{"id"}]}, {"models": [{"name": "models/..."}]} */
static bool read_names(struct arena *arena, const char *body, size_t length, struct names *names)
{
    struct value *root;
    if (value_parse_json(arena, "models", body, length, &root, NULL) != 0)
        return false;
    const struct value *list = value_get(root, "data");
    if (list == NULL)
        list = value_get(root, "models");
    if (list == NULL || list->kind != VALUE_LIST)
        return false;
    names->items = arena_array(arena, list->count + 1, sizeof *names->items);
    for (size_t i = 0; i < list->count; i++) {
        const char *name = value_text(list->items[i], "id", NULL);
        if (name == NULL)
            name = value_text(list->items[i], "name", NULL);
        if (name == NULL)
            continue;
        names->items[names->count++] = strncmp(name, "models/", 7) == 0 ? name + 7 : name;
    }
    names->whole =
        !value_bool(root, "has_more", false) && *value_text(root, "nextPageToken", "") == '\0';
    return true;
}

static void fail_with_names(struct item *item, const struct names *names)
{
    const char *wanted = item->model->wire_name;
    const char *near = options_nearest(wanted, names->items);
    BUF_LOCAL(words, 300);
    buf_addf(&words, "there is no model \"%.80s\" there", wanted);
    if (near != NULL)
        buf_addf(&words, "; did you mean \"%.80s\"?", near);
    for (size_t i = 0; near == NULL && i < names->count && i < NAMES_SHOWN; i++)
        buf_addf(&words, "%s%.60s", i == 0 ? "; there is " : ", ", names->items[i]);
    if (near == NULL && names->count > NAMES_SHOWN)
        buf_addf(&words, " and %zu more", names->count - NAMES_SHOWN);
    fail(item, ERR_USAGE, buf_text(&words));
}

static void judge_list(struct item *item)
{
    ARENA_LOCAL(arena);
    struct names names = {0};
    size_t length;
    const char *body = http_body(item->http, &length);
    bool listed = http_error(item->http)->code == ERR_NONE && http_status(item->http) == 200 &&
                  read_names(arena, body, length, &names);
    bool found = false;
    for (size_t i = 0; i < names.count; i++)
        found = found || strcmp(names.items[i], item->model->wire_name) == 0;
    if (found)
        end_item(item);
    else if (listed && (names.whole || item->fault == FAULT_MODEL))
        fail_with_names(item, &names);
    else if (item->fault == FAULT_MODEL)
        fail(item, ERR_USAGE, "HTTP 404: there is no such model there");
    else
        warn(item, "the server does not say which models it has");
}

/* ---- the task ---- */

static enum task_result over(struct preflight *preflight)
{
    for (size_t i = 0; i < preflight->count; i++) {
        end_item(&preflight->items[i]);
        if (preflight->err.code == ERR_NONE)
            preflight->err = preflight->items[i].err;
    }
    return TASK_DONE;
}

static enum task_result step(struct task *task)
{
    struct preflight *preflight = container_of(task, struct preflight, task);
    bool waits = false;
    if (task->cancel_requested) {
        err_set(&preflight->err, ERR_CANCELLED, "stopped");
        return over(preflight);
    }
    for (size_t i = 0; i < preflight->count; i++) {
        struct item *item = &preflight->items[i];
        if (item->phase == OWN && item->http == NULL)
            ask(preflight, item, OWN);
        else if (item->phase == OWN && http_done(item->http) && !judge_network(item))
            judge_own(preflight, item);
        else if (item->phase == LIST && http_done(item->http))
            judge_list(item);
        waits = waits || item->phase != OVER;
    }
    return waits ? TASK_WAIT : over(preflight);
}

static bool same_text(const char *one, const char *other)
{
    return strcmp(one != NULL ? one : "", other != NULL ? other : "") == 0;
}

static void add_model(struct preflight *preflight, const struct model *model)
{
    if (model->codec == NULL || model->codec->describe == NULL)
        return;
    for (size_t i = 0; i < preflight->count; i++) {
        const struct model *known = preflight->items[i].model;
        if (known->codec == model->codec && same_text(known->base_url, model->base_url) &&
            same_text(model_key(known), model_key(model)) &&
            same_text(known->wire_name, model->wire_name))
            return;
    }
    struct item *item = &preflight->items[preflight->count++];
    *item = (struct item){.model = model};
    model->codec->describe(preflight->arena, model->wire_name, model->base_url, model_key(model),
                           &item->url, &item->headers);
}

struct preflight *preflight_start(struct loop *loop, struct task *parent,
                                  const struct models *const *models, size_t count,
                                  const char *ca_file, struct err *err)
{
    static const char *const states[] = {"asking"};
    static const uint32_t moves[] = {0};
    static const struct task_type type = {"preflight", states, moves, 1, step, NULL};
    struct http *http = http_new(loop, err);
    size_t most = 0;
    if (http == NULL)
        return NULL;
    struct preflight *preflight = MEM_NEW(struct preflight);
    preflight->http = http;
    preflight->arena = arena_new();
    preflight->ca_file = ca_file != NULL ? arena_strdup(preflight->arena, ca_file) : NULL;
    for (size_t i = 0; i < count; i++)
        most += models[i] != NULL ? models[i]->count : 0;
    preflight->items = arena_array(preflight->arena, most > 0 ? most : 1, sizeof(struct item));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; models[i] != NULL && k < models[i]->count; k++)
            add_model(preflight, &models[i]->items[k]);
    task_start(loop, &preflight->task, &type, parent, "preflight");
    return preflight;
}

bool preflight_done(const struct preflight *preflight)
{
    return preflight->task.finished;
}

void preflight_cancel(struct preflight *preflight)
{
    task_cancel(&preflight->task);
}

const struct err *preflight_error(const struct preflight *preflight)
{
    return &preflight->err;
}

void preflight_free(struct preflight *preflight)
{
    if (preflight == NULL)
        return;
    http_free(preflight->http);
    arena_free(preflight->arena);
    mem_free(preflight);
}
