/* One retrieval:
 *
 *   recalling (pool: as recorded) -> found
 *     +-> embedding (vectors of its queries, where they are asked for)
 *           +-> looking (pool: in the index) -> keeping (the record, on disk) -> found
 *
 * Where the index fails the prompt is sent without passages, and that is recorded too: a process
 * that goes on with the run must say the same. Where the record cannot be kept, none is quoted. */
#include "agents/retrieve/retrieve.h"

#include "base/json.h"
#include "base/log.h"
#include "base/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECALLING, EMBEDDING, LOOKING, KEEPING, FOUND, STATES };
static const char *const states[STATES] = {"recalling", "embedding", "looking", "keeping", "found"};
static const uint32_t moves[STATES] = {[RECALLING] = 1u << EMBEDDING | 1u << FOUND,
                                       [EMBEDDING] = 1u << LOOKING | 1u << FOUND,
                                       [LOOKING] = 1u << KEEPING,
                                       [KEEPING] = 1u << FOUND};

enum { WHERE_BYTES = 300 };

/* ---- where a passage is from, in words ---- */

/* "gpu-memory.md", "cuda/barrier": the folders above are nobody's business but the machine's. */
static const char *short_source(const char *source)
{
    const char *slash = strrchr(source, '/'), *before = slash;
    bool manual = slash && strchr(slash, '.');
    if (!slash)
        return source;
    while (!manual && before > source && before[-1] != '/')
        before--;
    return manual ? slash + 1 : before;
}

static const char *where_of(struct arena *arena, const struct value *passage)
{
    const char *path = value_text(passage, "path", ""), *title = value_text(passage, "title", "");
    int64_t line = value_int(passage, "line", 0);
    char *where = arena_printf(
        arena, "%s%s%s%s%s%s%s", short_source(value_text(passage, "source", "")),
        line > 0 ? ":" : "", line > 0 ? arena_printf(arena, "%lld", (long long)line) : "",
        *path || *title ? ": " : "", path, *path && *title ? " > " : "", title);
    for (char *at = where; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == '`')
            *at = ' ';
    if (strlen(where) > WHERE_BYTES)
        where[WHERE_BYTES] = '\0';
    return where;
}

/* ---- the record ---- */

static const char *passage_key(uint64_t id, char key[20])
{
    snprintf(key, 20, "p%016llx", (unsigned long long)id);
    return key;
}

static void encode_passage(const struct rag_passage *passage, struct buf *text)
{
    buf_reset(text);
    struct json json = {.out = text};
    json_object(&json);
    json_put_text(&json, "source", passage->source);
    json_put_text(&json, "path", passage->path);
    json_put_text(&json, "title", passage->title);
    json_put_int(&json, "line", passage->line);
    json_put_text(&json, "text", passage->text);
    json_object_end(&json);
}

static void put_record(const struct retrieval *retrieval, const struct rag_passage *items,
                       size_t count, struct buf *text)
{
    char key[20];
    buf_reset(text);
    struct json json = {.out = text};
    json_object(&json);
    json_put_text(&json, "purpose", retrieval->plan.purpose);
    json_put_int(&json, "first_idea", retrieval->first_idea);
    json_put_int(&json, "ideas", retrieval->ideas);
    json_put_array(&json, "passages");
    for (size_t i = 0; i < count; i++)
        json_text(&json, passage_key(items[i].id, key));
    json_array_end(&json);
    json_object_end(&json);
}

static void add_passage(struct retrieval *retrieval, const struct value *passage)
{
    struct prompt_passage *added = &retrieval->passages[retrieval->count++];
    added->where = where_of(retrieval->arena, passage);
    added->text = value_text(passage, "text", "");
}

/* On a pool thread, as look() is; nobody else touches the retrieval meanwhile. A prompt whose
 * passages are gone (a store that somebody has cut down) is quoted without them. */
static void recall(void *argument)
{
    struct retrieval *retrieval = argument;
    struct arena *arena = retrieval->arena;
    struct value *record, *passage;
    struct err ignored;
    BUF_LOCAL(text, 64 << 20);
    retrieval->passages = arena_array(arena, RETRIEVE_MOST, sizeof *retrieval->passages);
    bool found =
        store_get(retrieval->store, STORE_PASSAGES, retrieval->key, &text, &ignored) == 0 &&
        value_parse_json(arena, "record", buf_text(&text), text.length, &record, &ignored) == 0;
    const struct value *ids = found ? value_get(record, "passages") : NULL;
    for (size_t i = 0; ids && i < ids->count && retrieval->count < RETRIEVE_MOST; i++)
        if (ids->items[i]->kind == VALUE_TEXT &&
            store_get(retrieval->store, STORE_PASSAGES, ids->items[i]->text, &text, &ignored) ==
                0 &&
            value_parse_json(arena, "passage", buf_text(&text), text.length, &passage, &ignored) ==
                0)
            add_passage(retrieval, passage);
    retrieval->recalled = found;
}

static void look(void *argument)
{
    struct retrieval *retrieval = argument;
    struct rag_passage *items = NULL;
    struct value *passage;
    struct err ignored, failed; /* is written to by what succeeds, too */
    size_t count = 0;
    if (retrieval->rag) {
        if (retrieve_passages(retrieval->rag, retrieval->backend, &retrieval->plan,
                              retrieval->tokens, retrieval->arena, &items, &count, &failed) != 0) {
            retrieval->err = failed;
            count = 0;
        }
    }
    BUF_LOCAL(text, 64 << 20);
    retrieval->batch = store_batch_new();
    for (size_t i = 0; i < count; i++) {
        char key[20];
        encode_passage(&items[i], &text);
        if (!store_has(retrieval->store, STORE_PASSAGES, passage_key(items[i].id, key)))
            store_batch_put(retrieval->batch, STORE_PASSAGES, key, buf_text(&text), text.length);
        /* From what the record says, so that both ways give the same bytes. */
        if (value_parse_json(retrieval->arena, "passage", buf_text(&text), text.length, &passage,
                             &ignored) == 0)
            add_passage(retrieval, passage);
    }
    put_record(retrieval, items, count, &text);
    store_batch_put(retrieval->batch, STORE_PASSAGES, retrieval->key, buf_text(&text), text.length);
}

/* ---- the task ---- */

/* True once the pool has done it. */
static bool done_by(struct retrieval *retrieval, void (*run)(void *argument))
{
    struct work *work = &retrieval->work;
    if (!work->done && !work->active)
        work_start(retrieval->task.loop, work, &retrieval->task, run, retrieval);
    if (!work->done)
        return false;
    work->done = false;
    return true;
}

static enum task_result step_recalling(struct retrieval *retrieval)
{
    if (!done_by(retrieval, recall))
        return TASK_WAIT;
    bool over = retrieval->recalled || retrieval->task.cancel_requested;
    task_move(&retrieval->task, over ? FOUND : EMBEDDING);
    return over ? TASK_DONE : TASK_AGAIN;
}

/* One that was cancelled leaves no record: a process that goes on with the run asks again. */
static enum task_result step_embedding(struct retrieval *retrieval)
{
    struct retrieve_plan *plan = &retrieval->plan;
    bool cancel = retrieval->task.cancel_requested;
    if (retrieval->embedding && retrieval->rag && !retrieval->asking) {
        retrieval->asking = ARENA_NEW(retrieval->arena, struct embedding_ask);
        retrieval->asking->texts = plan->queries;
        retrieval->asking->count = plan->count;
        retrieval->asking->id = retrieval->task.id;
        retrieval->asking->step = retrieval->step;
    }
    if (retrieval->asking) {
        if (!embedding_step(retrieval->embedding, retrieval->asking, &retrieval->task,
                            retrieval->arena, cancel))
            return TASK_WAIT;
        plan->vectors = retrieval->asking->vectors;
        plan->dimensions = retrieval->asking->dimensions;
    }
    task_move(&retrieval->task, cancel ? FOUND : LOOKING);
    return cancel ? TASK_DONE : TASK_AGAIN;
}

static enum task_result step_looking(struct retrieval *retrieval)
{
    if (!done_by(retrieval, look))
        return TASK_WAIT;
    if (retrieval->err.code &&
        (retrieval->err.code != ERR_CORRUPT || rag_say_damage(retrieval->rag)))
        log_event(LOG_WARN, "prompt.passages", retrieval->key, "without any: %s",
                  retrieval->err.message);
    struct store_batch *batch = retrieval->batch;
    retrieval->batch = NULL;
    task_move(&retrieval->task, KEEPING);
    store_write_take(retrieval->writer, &retrieval->write, &retrieval->task, batch);
    return TASK_WAIT;
}

static enum task_result step_keeping(struct retrieval *retrieval)
{
    if (retrieval->write.active)
        return TASK_WAIT;
    if (retrieval->write.err.code) {
        store_batch_free(retrieval->write.batch);
        retrieval->count = 0;
    }
    task_move(&retrieval->task, FOUND);
    return TASK_DONE;
}

static enum task_result retrieval_step(struct task *task)
{
    struct retrieval *retrieval = container_of(task, struct retrieval, task);
    switch (task->state) {
    case RECALLING:
        return step_recalling(retrieval);
    case EMBEDDING:
        return step_embedding(retrieval);
    case LOOKING:
        return step_looking(retrieval);
    default:
        return step_keeping(retrieval);
    }
}

static const struct task_type retrieval_type = {"retrieval", states,         moves,
                                                STATES,      retrieval_step, NULL};

void retrieval_start(struct loop *loop, struct retrieval *retrieval, struct task *parent,
                     const char *id)
{
    retrieval->arena = arena_new();
    task_start(loop, &retrieval->task, &retrieval_type, parent, id);
}

void retrieval_free(struct retrieval *retrieval)
{
    arena_free(retrieval->arena);
    *retrieval = (struct retrieval){.count = 0};
}
