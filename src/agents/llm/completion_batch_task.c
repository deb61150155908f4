/* agents/llm/completion_batch: one batch on its way.
 *
 *   gathering -> noting -> uploading -> creating -> naming -> resting <-> looking -> fetching
 *       |                                   |         ^          ^           |          |
 *       |                                   v         |          v           v          v
 *       +--(of an earlier process)-----> seeking -----+     cancelling     handing out, clearing
 *
 * Noting: the store has its members before the provider hears of it; naming: and its id before
 * anything else happens. Seeking: whether it was made is not known, and the provider's list tells.
 * Looking never gives up while the batch may still have answers; a provider that is away only makes
 * it late. Nobody wants it any more: it is cancelled, and what was done is taken, for a while; what
 * is not known by then stays in the store for a later process.
 */
#include "agents/llm/completion_batch.h"

#include "base/clock.h"
#include "base/log.h"

#include <string.h>

enum { GRACE_MS = 4 * 1000, SEEK_MS = 2000 };

#define MOVE(state) (1u << (state))
#define ENDS        (MOVE(HANDING) | MOVE(OVER))
static const char *const states[BATCH_STATES] = {
    "gathering", "noting",     "uploading", "creating",    "naming",   "resting", "looking",
    "fetching",  "cancelling", "seeking",   "handing out", "clearing", "over"};
static const uint32_t moves[BATCH_STATES] = {
    [GATHERING] = MOVE(NOTING) | MOVE(LOOKING) | MOVE(SEEKING) | ENDS,
    [NOTING] = MOVE(UPLOADING) | MOVE(CREATING) | ENDS,
    [UPLOADING] = MOVE(CREATING) | ENDS,
    [CREATING] = MOVE(NAMING) | MOVE(RESTING) | ENDS,
    [NAMING] = MOVE(RESTING) | ENDS,
    [RESTING] = MOVE(LOOKING) | MOVE(SEEKING) | MOVE(CANCELLING) | ENDS,
    [LOOKING] = MOVE(RESTING) | MOVE(FETCHING) | ENDS,
    [FETCHING] = MOVE(RESTING) | MOVE(FETCHING) | ENDS,
    [CANCELLING] = MOVE(RESTING) | ENDS,
    [SEEKING] = MOVE(RESTING) | MOVE(NAMING) | ENDS,
    [HANDING] = MOVE(CLEARING) | MOVE(OVER),
    [CLEARING] = MOVE(OVER)};

bool batch_gathers(const struct batch *batch)
{
    return batch->task.state == GATHERING && !batch->task.finished;
}

static enum task_result step_handing(struct batch *batch)
{
    if (batch->joined > 0)
        return TASK_WAIT;
    bool all = !batch->kept;
    for (size_t i = 0; i < batch->count; i++)
        all = all && batch->members[i]->joined;
    if (!all) {
        task_move(&batch->task, OVER);
        return TASK_DONE;
    }
    struct store_batch *out = store_batch_new();
    batch_remove_record(batch, out);
    batch->recalled = false;
    batch->write = (struct store_write){0};
    store_write_take(batch->completions->writer, &batch->write, &batch->task, out);
    task_move(&batch->task, CLEARING);
    return TASK_WAIT;
}

static enum task_result step_clearing(struct batch *batch)
{
    if (batch->write.active)
        return TASK_WAIT;
    store_batch_free(batch->write.batch); /* looked through again by the next process */
    task_move(&batch->task, OVER);
    return TASK_DONE;
}

/* ---- gathering ---- */

enum task_result batch_seek(struct batch *batch)
{
    if (batch->format->named)
        return batch_call(batch, SEEKING, BATCH_LIST, NULL, NULL);
    struct verdict lost = {.after_ms = -1, .fault = FAULT_RETRY, .money = SPEND_LOST};
    err_set(&lost.err, ERR_NETWORK,
            "it is not known whether the batch was made, and %s does not tell: all of it is "
            "charged, and asked anew",
            batch->provider);
    lost.alive = true;
    return batch_dissolve(batch, &lost);
}

static enum task_result note(struct batch *batch)
{
    struct store_batch *out = store_batch_new();
    struct budget *budget = batch->completions->budget;
    batch->created_ms = clock_wall_ms();
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->members[i]->ask != NULL)
            batch->members[kept++] = batch->members[i];
    batch->count = kept;
    batch_put_record(batch, out);
    for (size_t i = 0; budget != NULL && i < batch->count; i++)
        if (batch->members[i]->ask->spend.open)
            budget_keep(&batch->members[i]->ask->spend, batch->name, out);
    batch->write = (struct store_write){0};
    store_write_take(batch->completions->writer, &batch->write, &batch->task, out);
    task_move(&batch->task, NOTING);
    return TASK_WAIT;
}

static enum task_result step_gathering(struct batch *batch)
{
    if (batch->recalled && batch->id != NULL)
        return batch_call(batch, LOOKING, BATCH_LOOK, batch->id, NULL);
    if (batch->recalled)
        return batch_seek(batch);
    if (batch->joined == 0) {
        timer_stop(&batch->timer);
        task_move(&batch->task, OVER);
        return TASK_DONE;
    }
    if (batch->timer.armed)
        return TASK_WAIT;
    if (batch->completions->held) {
        timer_start(batch->task.loop, &batch->timer, &batch->task, BATCH_SOON_MS);
        return TASK_WAIT;
    }
    return note(batch);
}

/* ---- making it ---- */

static void put_requests(struct batch *batch, struct buf *out)
{
    const struct batch_place place = batch_place_of(batch);
    struct arena *arena = arena_new();
    struct batch_item *items = arena_array(arena, batch->count, sizeof *items);
    struct completion_request *requests = arena_array(arena, batch->count, sizeof *requests);
    for (size_t i = 0; i < batch->count; i++) {
        const struct ask *ask = batch->members[i]->ask;
        requests[i] = ask->request;
        requests[i].max_tokens = ask_max_tokens(ask);
        requests[i].cache = ask->model->cache;
        items[i] = (struct batch_item){batch->members[i]->key, &requests[i]};
    }
    batch->format->put(arena, &place, items, batch->count, out);
    arena_free(arena);
}

static enum task_result step_noting(struct batch *batch)
{
    if (batch->write.active)
        return TASK_WAIT;
    if (batch->write.err.code != ERR_NONE || batch->stopping) {
        struct verdict verdict = {.after_ms = -1, .fault = FAULT_FATAL, .money = SPEND_RELEASED};
        verdict.told = true;
        verdict.err = batch->write.err;
        if (batch->stopping)
            err_set(&verdict.err, ERR_CANCELLED, "stopped");
        store_batch_free(batch->write.batch);
        batch->write.batch = NULL;
        return batch_hand_out(batch, &verdict);
    }
    BUF_LOCAL(body, BATCH_BODY_MOST);
    put_requests(batch, &body);
    for (size_t i = 0; i < batch->count; i++) {
        batch->completions->totals.requests++;
        batch->members[i]->ask->tally->view.asked++;
    }
    return batch->format->uploads ? batch_call(batch, UPLOADING, BATCH_UPLOAD, NULL, &body)
                                  : batch_call(batch, CREATING, BATCH_CREATE, NULL, &body);
}

static enum task_result step_uploading(struct batch *batch)
{
    struct verdict verdict;
    const struct batch_place place = batch_place_of(batch);
    if (batch->http != NULL && !http_done(batch->http))
        return TASK_WAIT;
    const struct value *root = batch_heard_object(batch, &verdict);
    if (root == NULL)
        return batch_dissolve(batch, &verdict);
    batch->file = arena_strdup(batch->arena, value_text(root, "id", ""));
    batch_drop_call(batch);
    BUF_LOCAL(body, 1 << 16);
    batch_put_create(&place, batch->file, &body);
    return batch_call(batch, CREATING, BATCH_CREATE, NULL, &body);
}

static enum task_result name(struct batch *batch, const struct batch_view *view)
{
    struct store_batch *out = store_batch_new();
    batch->id = arena_strdup(batch->arena, view->id);
    batch->done = view->done;
    log_event(LOG_INFO, "batch.made", batch->name, "%zu request%s of %s are %s", batch->count,
              batch->count == 1 ? "" : "s", batch->wire_name, batch->id);
    batch_put_record(batch, out);
    batch->write = (struct store_write){0};
    store_write_take(batch->completions->writer, &batch->write, &batch->task, out);
    batch_drop_call(batch);
    endpoint_succeeded(batch->endpoint);
    completions_wake(batch->completions, batch->endpoint); /* who waited for a probe */
    task_move(&batch->task, NAMING);
    return TASK_WAIT;
}

static enum task_result step_creating(struct batch *batch)
{
    struct batch_view view;
    struct verdict verdict;
    if (batch->http != NULL && !http_done(batch->http))
        return TASK_WAIT;
    if (batch_heard_view(batch, &view, &verdict))
        return name(batch, &view);
    int status = batch->http != NULL ? http_status(batch->http) : 0;
    bool network = batch->http != NULL && http_error(batch->http)->code != ERR_NONE;
    /* It may have been made: where nothing was said, or by who stands before the provider. */
    bool unknown = (network && http_connected(batch->http)) || status == 200;
    if (batch->format->named && (unknown || status >= 500)) {
        batch->failure = verdict;
        batch->rest_ms = SEEK_MS;
        return batch_rest(batch, batch_next_look_ms(batch));
    }
    verdict.money = unknown ? SPEND_LOST : SPEND_RELEASED;
    return batch_dissolve(batch, &verdict);
}

static enum task_result step_naming(struct batch *batch)
{
    if (batch->write.active)
        return TASK_WAIT;
    store_batch_free(batch->write.batch); /* it is found by its name then */
    batch->write.batch = NULL;
    return batch_rest(batch, batch_next_look_ms(batch));
}

static enum task_result step_seeking(struct batch *batch)
{
    const struct batch_place place = batch_place_of(batch);
    struct batch_view view;
    struct verdict verdict;
    if (batch->http != NULL && !http_done(batch->http))
        return TASK_WAIT;
    const struct value *root = batch_heard_object(batch, &verdict);
    if (root == NULL && (verdict.fault == FAULT_KEY || verdict.fault == FAULT_QUOTA || verdict.tls))
        return batch_keep(batch, verdict.fault, &verdict.err);
    if (root == NULL)
        return batch_rest(batch, batch_next_look_ms(batch));
    const struct value *found = batch_find(batch->scratch, &place, root);
    if (found != NULL && batch_read_view(batch->scratch, &place, found, &view, &verdict.err) == 0)
        return name(batch, &view);
    if (batch->failure.err.code == ERR_NONE) {
        batch->failure = (struct verdict){.after_ms = -1, .fault = FAULT_RETRY, .alive = true};
        err_set(&batch->failure.err, ERR_NETWORK, "the program ended before the batch was made");
    }
    batch->failure.money = SPEND_RELEASED;
    return batch_dissolve(batch, &batch->failure);
}

/* ---- the task ---- */

/* Nobody wants it any more, or the process has to end. */
static bool is_unwanted(const struct batch *batch)
{
    bool wanted = batch->joined == 0;
    for (size_t i = 0; i < batch->count; i++)
        wanted =
            wanted || (batch->members[i]->ask && !batch->members[i]->ask->task.cancel_requested);
    return !wanted;
}

static enum task_result step(struct task *task)
{
    static enum task_result (*const steps[BATCH_STATES])(struct batch *) = {
        step_gathering,        step_noting,        step_uploading,     step_creating,
        step_naming,           batch_step_resting, batch_step_looking, batch_step_fetching,
        batch_step_cancelling, step_seeking,       step_handing,       step_clearing};
    struct batch *batch = container_of(task, struct batch, task);
    bool at_provider = task->state > NOTING && task->state < HANDING && task->state != NAMING;
    bool on_its_way = task->state > GATHERING && task->state < HANDING;
    if (on_its_way && !batch->stopping && is_unwanted(batch)) {
        batch->stopping = true;
        timer_start(task->loop, &batch->grace, task, GRACE_MS);
    }
    if (batch->stopping && at_provider && (!batch->grace.armed || batch->completions->hurried)) {
        const struct err err = {ERR_CANCELLED, "stopped"};
        return batch_keep(batch, FAULT_RETRY, &err);
    }
    return steps[task->state](batch);
}

const struct task_type batch_type = {"batch", states, moves, BATCH_STATES, step, NULL};
