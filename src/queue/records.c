/* queue/records: "e17" in the store's candidates and sources until its result is in evaluations. */
#include "base/clock.h"
#include "base/mem.h"
#include "eval/problem/target.h"
#include "queue/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 24, RECORD_MOST = 64 << 20, SOURCE_MOST = 1 << 20 };

static const char *key_of(uint64_t id, char key[KEY])
{
    snprintf(key, KEY, "e%" PRIu64, id);
    return key;
}

/* ---- writing (pool thread) ---- */

void record_accept(struct store_batch *batch, const struct queue_asked *asked)
{
    for (size_t i = 0; i < asked->count; i++) {
        const struct queue_item *item = &asked->items[i];
        char key[KEY], when[32];
        JSON_LOCAL(json, text, RECORD_MOST);
        clock_format_wall(clock_wall_ms(), when);
        json_object(&json);
        json_put_text(&json, "problem", item->problem);
        json_put_text(&json, "name", item->name);
        json_put_text(&json, "client", asked->client);
        json_put_text(&json, "asked", when);
        json_put_text(&json, "backend", item->backend);
        json_put_text(&json, "effort", item->effort);
        json_put_bool(&json, "profile", item->profile);
        json_put_int(&json, "bytes", (int64_t)item->length);
        if (item->tune)
            json_put_text(&json, "tune", item->tune);
        json_object_end(&json);
        key_of(asked->first + i, key);
        store_batch_put(batch, STORE_CANDIDATES, key, buf_text(&text), text.length);
        store_batch_put(batch, STORE_SOURCES, key, item->source, item->length);
    }
}

void record_keep(struct store_batch *batch, const struct job *job)
{
    char key[KEY];
    key_of(job->id, key);
    store_batch_put(batch, STORE_EVALUATIONS, key, job->result, strlen(job->result));
    store_batch_remove(batch, STORE_CANDIDATES, key);
    store_batch_remove(batch, STORE_SOURCES, key);
    if (job->id > QUEUE_KEPT)
        store_batch_remove(batch, STORE_EVALUATIONS, key_of(job->id - QUEUE_KEPT, key));
}

/* ---- a job's result ---- */

static const char *const told[] = {"problem", "name", "client", "asked"};

static void put_told(struct json *json, const struct value *record)
{
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        json_put_text(json, told[i], value_text(record, told[i], ""));
}

void record_result(struct queue *queue, struct job *job, const struct err *err)
{
    BUF_LOCAL(stored, RECORD_MOST);
    BUF_LOCAL(text, RECORD_MOST);
    ARENA_LOCAL(arena);
    struct value *record = NULL;
    struct err ignored;
    struct json json = {.out = &text};
    char key[KEY];
    if (store_get(queue->store, STORE_CANDIDATES, key_of(job->id, key), &stored, &ignored) ||
        value_parse_json(arena, key, buf_text(&stored), stored.length, &record, &ignored))
        record = NULL;
    json_object(&json);
    put_told(&json, record);
    if (err->code) {
        json_put_object(&json, "error");
        json_put_text(&json, "code", err_code_name(err->code));
        json_put_text(&json, "message", err->message);
        json_object_end(&json);
    } else {
        if (job->lane && *lane_host(job->lane->lane))
            json_put_text(&json, "host", lane_host(job->lane->lane));
        json_key(&json, "evaluation");
        evaluation_to_json(&job->request.evaluation, &json);
    }
    json_object_end(&json);
    job->result = buf_take(&text);
}

/* ---- reading ---- */

int record_read(struct queue *queue, struct job *job, struct err *err)
{
    BUF_LOCAL(text, RECORD_MOST);
    struct value *record = NULL;
    char key[KEY];
    key_of(job->id, key);
    job->arena = arena_new();
    job->source.max = SOURCE_MOST + 1;
    if (store_get(queue->store, STORE_CANDIDATES, key, &text, err) ||
        store_get(queue->store, STORE_SOURCES, key, &job->source, err) ||
        value_parse_json(job->arena, key, buf_text(&text), text.length, &record, err))
        return -1;
    job->request = (struct lane_request){.op = LANE_EVALUATE,
                                         .id = arena_strdup(job->arena, key),
                                         .name = value_text(record, "name", ""),
                                         .source = buf_text(&job->source),
                                         .source_length = job->source.length,
                                         .tune = value_text(record, "tune", NULL),
                                         .effort = effort_find(value_text(record, "effort", "")),
                                         .profile = value_bool(record, "profile", false)};
    return 0;
}

struct restoring {
    struct queue *queue;
    uint64_t last;
};

static bool note_last(void *context, const char *key, const char *value, size_t length)
{
    struct restoring *restoring = context;
    uint64_t id = strtoull(key + 1, NULL, 10);
    (void)value, (void)length;
    if (id > restoring->last)
        restoring->last = id;
    return true;
}

static bool restore(void *context, const char *key, const char *value, size_t length)
{
    struct restoring *restoring = context;
    struct value *record = NULL;
    struct err ignored;
    ARENA_LOCAL(arena);
    (void)note_last(context, key, value, length);
    if (value_parse_json(arena, key, value, length, &record, &ignored))
        return true;
    const struct target *target = target_find(value_text(record, "backend", ""));
    if (target) /* else a newer program's: it stays where it is */
        job_wait(restoring->queue, value_text(record, "client", ""), restoring->last,
                 value_text(record, "problem", ""), target->name,
                 (size_t)value_int(record, "bytes", 0));
    return true;
}

int records_restore(struct queue *queue, struct err *err)
{
    struct restoring restoring = {.queue = queue};
    if (store_scan(queue->store, STORE_CANDIDATES, "e", restore, &restoring, err) ||
        store_scan(queue->store, STORE_EVALUATIONS, "e", note_last, &restoring, err))
        return -1;
    queue->next_id = restoring.last + 1;
    queue->now.again = queue->waiting;
    return 0;
}

static bool is_measured(struct queue *queue, uint64_t id)
{
    bool is = false;
    pthread_mutex_lock(&queue->lock);
    for (size_t i = 0; i < queue->told.measuring_count; i++)
        is = is || queue->told.measuring[i] == id;
    pthread_mutex_unlock(&queue->lock);
    return is;
}

/* Its record, and where it stands. */
static int look(struct queue *queue, uint64_t id, struct buf *text, const char **state,
                struct err *err)
{
    struct err ignored;
    char key[KEY];
    *state = is_measured(queue, id) ? "measuring" : "waiting";
    if (store_get(queue->store, STORE_CANDIDATES, key_of(id, key), text, &ignored) == 0)
        return 0;
    *state = "done";
    if (store_get(queue->store, STORE_EVALUATIONS, key, text, err) == 0)
        return 0;
    return err->code == ERR_NOT_FOUND
               ? err_set(err, ERR_NOT_FOUND, "no evaluation %s: the last %d are kept", key,
                         QUEUE_KEPT)
               : -1;
}

static int put(uint64_t id, const char *state, const struct buf *text, struct buf *out,
               struct err *err)
{
    static const char *const results[] = {"host", "evaluation", "error"};
    ARENA_LOCAL(arena);
    struct value *record = NULL;
    struct json json = {.out = out};
    char key[KEY];
    if (value_parse_json(arena, key_of(id, key), buf_text(text), text->length, &record, err))
        return -1;
    json_object(&json);
    json_put_text(&json, "id", key);
    json_put_text(&json, "state", state);
    put_told(&json, record);
    for (size_t i = 0; *state == QUEUE_TOLD_DONE && i < sizeof results / sizeof results[0]; i++)
        if (value_get(record, results[i]))
            json_put_value(&json, results[i], value_get(record, results[i]));
    json_object_end(&json);
    return 0;
}

int queue_put_item(struct queue *queue, uint64_t id, struct buf *out, struct err *err)
{
    BUF_LOCAL(text, RECORD_MOST);
    const char *state;
    return look(queue, id, &text, &state, err) || put(id, state, &text, out, err) ? -1 : 0;
}

int queue_put_news(struct queue *queue, uint64_t id, char *note, struct buf *out, struct err *err)
{
    BUF_LOCAL(text, RECORD_MOST);
    const char *state;
    if (*note == QUEUE_TOLD_DONE)
        return 0;
    if (look(queue, id, &text, &state, err))
        return -1;
    if (*state == *note)
        return 0;
    if (put(id, state, &text, out, err))
        return -1;
    buf_add_char(out, '\n');
    *note = *state;
    return 0;
}
