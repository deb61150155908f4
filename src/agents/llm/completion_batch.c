/* agents/llm/completion_batch: who is in a batch, and what the store has of it. */
#include "agents/llm/completion_batch.h"

#include "agents/llm/providers/answer.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RECORD_BYTES_MAX = 8 << 20, GATHERS_TIMES = 6, ESCAPED_TIMES = 2, KEY_LENGTH = 32 };

/* ---- the record ---- */

static const char *record_key(const struct batch *batch)
{
    return arena_printf(batch->arena, "batch/%s/%s", batch->completions->run, batch->name);
}

void batch_put_record(const struct batch *batch, struct store_batch *out)
{
    JSON_LOCAL(json, text, RECORD_BYTES_MAX);
    json_object(&json);
    json_put_text(&json, "name", batch->name);
    json_put_text(&json, "provider", batch->provider);
    json_put_text(&json, "url", batch->base_url);
    json_put_text(&json, "model", batch->wire_name);
    json_put_text(&json, "id", batch->id);
    json_put_int(&json, "created_ms", (int64_t)batch->created_ms);
    json_put_array(&json, "requests");
    for (size_t i = 0; i < batch->count; i++)
        json_text(&json, batch->members[i]->key);
    json_array_end(&json);
    json_object_end(&json);
    store_batch_put(out, STORE_FACTS, record_key(batch), buf_text(&text), text.length);
}

void batch_remove_record(const struct batch *batch, struct store_batch *out)
{
    store_batch_remove(out, STORE_FACTS, record_key(batch));
}

static struct batch *batch_new(struct completions *completions)
{
    struct batch *batch = MEM_NEW(struct batch);
    batch->completions = completions;
    batch->arena = arena_new();
    list_append(&completions->batches, &batch->link);
    return batch;
}

static void batch_free(struct batch *batch)
{
    list_remove(&batch->link);
    arena_free(batch->scratch);
    arena_free(batch->arena);
    mem_free(batch->members);
    mem_free(batch);
}

static struct batch_member *add_member(struct batch *batch, const char *key)
{
    struct batch_member *member = ARENA_NEW(batch->arena, struct batch_member);
    MEM_MORE(batch->members, batch->count, batch->capacity);
    batch->members[batch->count++] = member;
    snprintf(member->key, sizeof member->key, "%s", key);
    return member;
}

static bool read_record(void *context, const char *key, const char *text, size_t length)
{
    struct batch *batch = batch_new(context);
    struct value *root = NULL;
    (void)!value_parse_json(batch->arena, key, text, length, &root, NULL);
    const struct value *list = value_get(root, "requests");
    const struct codec *codec = codec_find(value_text(root, "provider", ""));
    batch->recalled = true;
    batch->format = codec != NULL ? batch_format_of(codec) : NULL;
    batch->name = value_text(root, "name", "");
    batch->provider = value_text(root, "provider", "");
    batch->base_url = value_text(root, "url", "");
    batch->wire_name = value_text(root, "model", "");
    batch->id = value_text(root, "id", NULL);
    batch->created_ms = (uint64_t)value_int(root, "created_ms", 0);
    for (size_t i = 0; list != NULL && list->kind == VALUE_LIST && i < list->count; i++)
        if (list->items[i]->text != NULL && list->items[i]->length == KEY_LENGTH)
            (void)add_member(batch, list->items[i]->text);
    return true;
}

/* Members that were answered are out of it; what has none left, or says nothing, is over. */
static bool is_over(struct batch *batch)
{
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (!store_has(batch->completions->store, STORE_COMPLETIONS, batch->members[i]->key))
            batch->members[kept++] = batch->members[i];
    batch->count = kept;
    return kept == 0 || batch->format == NULL || *batch->name == '\0';
}

int batches_recall(struct completions *completions, struct err *err)
{
    struct store_batch *over = store_batch_new();
    char prefix[80];
    snprintf(prefix, sizeof prefix, "batch/%.60s/", completions->run);
    int status = store_scan(completions->store, STORE_FACTS, prefix, read_record, completions, err);
    list_each_safe (link, &completions->batches) {
        struct batch *batch = container_of(link, struct batch, link);
        if (!is_over(batch))
            continue;
        batch_remove_record(batch, over);
        batch_free(batch);
    }
    if (status == 0 && !store_batch_empty(over))
        status = store_commit(completions->store, over, err);
    store_batch_free(over);
    return status;
}

/* Those that ended, and whose answers were all taken. */
static void sweep(struct completions *completions)
{
    list_each_safe (link, &completions->batches) {
        struct batch *batch = container_of(link, struct batch, link);
        if (batch->task.finished && batch->joined == 0 && !batch->recalled)
            batch_free(batch);
    }
}

void batches_free(struct completions *completions)
{
    list_each_safe (link, &completions->batches)
        batch_free(container_of(link, struct batch, link));
}

/* ---- members ---- */

static size_t size_of(const struct ask *ask)
{
    const struct completion_request *request = &ask->request;
    size_t bytes = 4096 + strlen(request->prompt);
    bytes += request->system != NULL ? strlen(request->system) : 0;
    bytes += request->schema != NULL ? strlen(request->schema) : 0;
    bytes += request->earlier != NULL ? strlen(request->earlier) : 0;
    return ESCAPED_TIMES * bytes;
}

static bool has_room(const struct batch *batch, const struct ask *ask)
{
    return batch_gathers(batch) && batch->endpoint == ask->endpoint &&
           strcmp(batch->wire_name, ask->model->wire_name) == 0 &&
           batch->count < batch->format->requests_most &&
           batch->bytes + size_of(ask) <= batch->format->bytes_most;
}

static struct batch *begin_batch(const struct ask *ask)
{
    static unsigned number;
    struct completions *completions = ask->completions;
    const struct model *model = ask->model;
    char digits[33];
    sweep(completions);
    struct batch *batch = batch_new(completions);
    const char *seed = arena_printf(batch->arena, "%s %llu %d %u", store_folder(completions->store),
                                    (unsigned long long)clock_wall_ms(), getpid(), number++);
    hash_format(hash_bytes(seed, strlen(seed)), digits);
    batch->name = arena_printf(batch->arena, "twagent-%s-%.12s", completions->run, digits);
    batch->format = batch_format_of(model->codec);
    batch->model = model;
    batch->endpoint = ask->endpoint;
    batch->provider = model->codec->name;
    batch->base_url = model->base_url;
    batch->wire_name = model->wire_name;
    batch->first_ns = clock_now_ns();
    task_start(completions->loop, &batch->task, &batch_type, NULL, batch->name);
    return batch;
}

static void enter(struct ask *ask, struct batch *batch, struct batch_member *member)
{
    ask->batch = batch;
    ask->member = member;
    ask->heard = 0;
    ask->sent_ns = clock_now_ns();
    member->ask = ask;
    member->joined = true;
    batch->joined++;
    if (!batch->task.finished)
        task_expect(&batch->task);
    if (!member->ended)
        task_expect(&ask->task);
}

/* It goes when nobody has joined for a while, or the first has waited long. */
void batch_join(struct ask *ask)
{
    struct completions *completions = ask->completions;
    uint64_t gather_ms = ask->model->batch->gather_ms;
    struct batch *batch = NULL;
    list_each (link, &completions->batches) {
        struct batch *other = container_of(link, struct batch, link);
        if (has_room(other, ask))
            batch = other;
    }
    if (batch == NULL)
        batch = begin_batch(ask);
    batch->bytes += size_of(ask);
    enter(ask, batch, add_member(batch, ask->key));
    uint64_t waited_ms = (clock_now_ns() - batch->first_ns) / 1000000,
             most = GATHERS_TIMES * gather_ms;
    uint64_t left_ms = waited_ms < most ? most - waited_ms : 0;
    timer_stop(&batch->timer);
    timer_start(completions->loop, &batch->timer, &batch->task,
                gather_ms < left_ms ? gather_ms : left_ms);
}

static struct batch_member *find_member(const struct batch *batch, const struct ask *ask)
{
    const struct model *model = ask->model;
    if (!batch->recalled || model->codec == NULL ||
        strcmp(batch->provider, model->codec->name) != 0 ||
        strcmp(batch->base_url, model->base_url) != 0 ||
        strcmp(batch->wire_name, model->wire_name) != 0)
        return NULL;
    for (size_t i = 0; i < batch->count; i++)
        if (!batch->members[i]->joined && strcmp(batch->members[i]->key, ask->key) == 0)
            return batch->members[i];
    return NULL;
}

bool batch_recall(struct ask *ask)
{
    struct completions *completions = ask->completions;
    list_each (link, &completions->batches) {
        struct batch *batch = container_of(link, struct batch, link);
        struct batch_member *member = find_member(batch, ask);
        if (member == NULL)
            continue;
        if (completions->budget != NULL)
            (void)budget_take_up(completions->budget, ask->model, ask->task.id, ask->key,
                                 &ask->spend);
        if (batch->model == NULL) {
            batch->model = ask->model;
            batch->endpoint = ask->endpoint;
            task_start(completions->loop, &batch->task, &batch_type, NULL, batch->name);
        }
        enter(ask, batch, member);
        return true;
    }
    return false;
}

void batch_leave(struct ask *ask)
{
    struct batch *batch = ask->batch;
    if (batch == NULL)
        return;
    if (!ask->member->ended)
        task_complete(&ask->task);
    ask->member->ask = NULL;
    ask->batch = NULL;
    ask->member = NULL;
    batch->joined--;
    if (!batch->task.finished)
        task_complete(&batch->task);
}

bool batch_leaves(struct ask *ask)
{
    if (ask->batch == NULL || ask->member->ended)
        return true;
    if (batch_gathers(ask->batch) && !ask->batch->recalled) {
        batch_leave(ask);
        return true;
    }
    task_wake(&ask->batch->task);
    return false;
}

enum task_result ask_step_batched(struct ask *ask)
{
    const struct batch_member *member = ask->member;
    if (!member->ended)
        return TASK_WAIT;
    struct verdict verdict = member->fault;
    if (member->answer != NULL) {
        enum fault fault = FAULT_NONE;
        struct codec_state *state = answer_begin(ask->arena, ask->model->codec);
        verdict = (struct verdict){.after_ms = -1, .alive = true, .money = SPEND_CUT};
        int status = answer_feed(state, member->answer, strlen(member->answer), &verdict.err);
        int finished = answer_finish(state, &ask->completion, &fault, &verdict.err);
        if (status != 0 || finished != 0)
            ask_judge_answer(ask, fault, &verdict);
        verdict.alive = true;
    }
    if (verdict.fault != FAULT_NONE)
        ask->sent_ns = clock_now_ns(); /* what was waited says nothing of the provider */
    return ask_judged(ask, &verdict);
}

/* ---- in words ---- */

void completions_say_batches(const struct completions *completions, struct buf *out)
{
    list_each (link, &completions->batches) {
        const struct batch *batch = container_of(link, struct batch, link);
        if (batch->joined == 0 || batch->task.finished)
            continue;
        uint64_t now = clock_wall_ms(), made = batch->created_ms;
        uint64_t minutes = made > 0 && now > made ? (now - made) / 60000 : 0;
        buf_addf(out, "%s%zu request%s", out->length > 0 ? "; " : "", batch->joined,
                 batch->joined == 1 ? "" : "s");
        if (batch->id != NULL)
            buf_addf(out, " in %s, %lld done in %llu:%02llu", batch->id, (long long)batch->done,
                     (unsigned long long)minutes / 60, (unsigned long long)minutes % 60);
        else
            buf_addf(out, " for %s", batch->wire_name);
    }
}
