/* agents/llm/completion: one request on its way.
 *
 *   looking up -> waiting <-> reserving        (no budget: not at all)
 *        |         ^   |
 *        |         |   +-> sending -> storing -> ended
 *        |         |          |
 *        |         +- backing off <- settling -> ended     (no budget: settling is passed by)
 *        |
 *        +-> mailing | replaying -> storing -> ended
 *        +-> ended (it is in the store already)
 *
 * Cancelling, and an endpoint that is blocked, end it from wherever it is once what it started has
 * ended or been taken back, and what it may have cost is on disk.
 */
#include "agents/llm/completion_private.h"

#include "agents/llm/completion_batch.h"
#include "agents/llm/completion_record.h"
#include "agents/llm/providers/request.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <assert.h>
#include <string.h>

enum {
    STORED_BYTES_MAX = 64 << 20,
    ELDER_MS = 1000,
    KEY_LOOK_MS = 1000, /* a new one wakes who waits */
    ARENA_BYTES = 1536  /* an address, headers and what reads the answer; its text has its own */
};

#define MOVE(state) (1u << (state))
static const char *const states[ASK_STATES] = {
    "looking up",  "waiting", "reserving", "sending", "settling",
    "backing off", "mailing", "replaying", "storing", "ended"};
static const uint32_t moves[ASK_STATES] = {
    [LOOKING_UP] = MOVE(WAITING) | MOVE(SENDING) | MOVE(MAILING) | MOVE(REPLAYING) | MOVE(STORING) |
                   MOVE(ENDED),
    [WAITING] = MOVE(RESERVING) | MOVE(SENDING) | MOVE(SETTLING) | MOVE(ENDED),
    [RESERVING] = MOVE(WAITING) | MOVE(SETTLING) | MOVE(ENDED),
    [SENDING] = MOVE(SETTLING) | MOVE(BACKING_OFF) | MOVE(WAITING) | MOVE(STORING) | MOVE(ENDED),
    [SETTLING] = MOVE(BACKING_OFF) | MOVE(WAITING) | MOVE(ENDED),
    [BACKING_OFF] = MOVE(WAITING) | MOVE(ENDED),
    [MAILING] = MOVE(STORING) | MOVE(ENDED),
    [REPLAYING] = MOVE(STORING) | MOVE(ENDED),
    [STORING] = MOVE(ENDED)};

/* ---- ends ---- */

/* A message of a provider may quote the key it was sent. */
void ask_hide_key(const struct model *model, struct err *err)
{
    model_hide_key(model, err->message);
}

void ask_let_go(struct ask *ask)
{
    timer_stop(&ask->timer);
    ask_leave_budget(ask);
    slots_release(&ask->slot);
    if (ask->endpoint != NULL)
        endpoint_leave(ask->endpoint, ask);
}

static void wake_same(const struct ask *ask)
{
    list_each (link, &ask->completions->asks) {
        struct ask *other = container_of(link, struct ask, all);
        if (other != ask && strcmp(other->key, ask->key) == 0)
            task_wake(&other->task);
    }
}

enum task_result ask_end(struct ask *ask)
{
    ask_let_go(ask);
    batch_leave(ask);
    buf_free(&ask->stored);
    ask->awaited = false;
    wake_same(ask);
    list_remove(&ask->all);
    task_move(&ask->task, ENDED);
    return TASK_DONE;
}

enum task_result ask_settle(struct ask *ask, struct store_batch *batch, int next)
{
    if (batch != NULL) {
        ask->next = next;
        ask->write = (struct store_write){0};
        store_write_take(ask->completions->writer, &ask->write, &ask->task, batch);
        task_move(&ask->task, SETTLING);
        return TASK_WAIT;
    }
    if (next == ENDED)
        return ask_end(ask);
    task_move(&ask->task, next);
    return TASK_AGAIN;
}

enum task_result ask_fail(struct ask *ask, enum fault fault, const struct err *err)
{
    ask->fault = fault;
    ask->err = *err;
    ask_hide_key(ask->model, &ask->err);
    log_event(LOG_WARN, "completion.failed", ask->task.id, "%s: %s", ask->model->name,
              ask->err.message);
    ask_let_go(ask);
    return ask_settle(ask, ask_close_spend(ask, SPEND_RELEASED), ENDED);
}

static enum task_result step_settling(struct ask *ask)
{
    if (ask->write.active)
        return TASK_WAIT;
    if (ask->write.err.code !=
        ERR_NONE) { /* on disk it stands as reserved: charged at the next start */
        log_event(LOG_ERROR, "budget.lost", ask->task.id, "%s", ask->write.err.message);
        store_batch_free(ask->write.batch);
        ask->write.batch = NULL;
    }
    return ask_settle(ask, NULL, ask->next);
}

/* ---- looking up ---- */

static struct completion_use use_of(const struct ask *ask)
{
    return (struct completion_use){.run = ask->completions->run,
                                   .asker = ask->task.id,
                                   .purpose = ask->purpose != NULL ? ask->purpose : "",
                                   .step = ask->step};
}

/* Who was drawn depends on who could be asked then: a run that goes on takes the same one. */
static void put_draw(const struct ask *ask, struct store_batch *batch)
{
    char key[256];
    struct completion_use use = use_of(ask);
    JSON_LOCAL(json, text, 1 << 12);
    json_object(&json);
    json_put_text(&json, "model", ask->model->name);
    json_object_end(&json);
    completion_draw_key(use.asker, use.purpose, use.step, key);
    store_batch_put(batch, STORE_FACTS, key, buf_text(&text), text.length);
}

/* An answer that another request got is noted as this one's too, so that a replay of this run finds
 * it. */
static void look_up(void *argument)
{
    struct ask *ask = argument;
    if (store_get(ask->completions->store, STORE_COMPLETIONS, ask->key, &ask->stored,
                  &ask->stored_err) != 0)
        return;
    struct completion_use use = use_of(ask);
    struct buf adopted;
    ask->stored_err.code = ERR_NONE;
    buf_init(&adopted, STORED_BYTES_MAX);
    ask->alias = completion_adopt(buf_text(&ask->stored), ask->stored.length, &use, &adopted) &&
                 adopted.dropped == 0;
    if (ask->alias) {
        buf_free(&ask->stored);
        ask->stored = adopted;
        return;
    }
    buf_free(&adopted);
}

/* Says what a refusal that is in the store said, or ERR_NONE. */
static void recall_refusal(struct ask *ask)
{
    if (strcmp(ask->completion.finish, "refused") != 0)
        return;
    ask->fault = FAULT_REFUSED;
    err_set(&ask->err, ERR_PROTOCOL, "the provider refused to answer");
}

static enum task_result found(struct ask *ask)
{
    ask->from_store = true;
    ask->completions->totals.from_store++;
    ask->tally->view.cached++;
    log_event(LOG_DEBUG, "completion.stored", ask->task.id, "%s: answered by the store",
              ask->purpose);
    recall_refusal(ask);
    if (!ask->alias)
        return ask_end(ask);
    struct store_batch *batch = store_batch_new();
    store_batch_put(batch, STORE_COMPLETIONS, ask->key, buf_text(&ask->stored), ask->stored.length);
    put_draw(ask, batch);
    store_write_take(ask->completions->writer, &ask->write, &ask->task, batch);
    task_move(&ask->task, STORING);
    return TASK_WAIT;
}

/* Who began before and asks the same, or NULL. When that one has ended the store has the answer, or
 * it is ours to ask. */
static const struct ask *asked_by(const struct ask *ask)
{
    list_each (link, &ask->completions->asks) {
        const struct ask *other = container_of(link, struct ask, all);
        if (other == ask || strcmp(other->key, ask->key) == 0)
            return other != ask ? other : NULL;
    }
    return NULL;
}

static enum task_result step_looking_up(struct ask *ask)
{
    const struct ask *elder = !ask->work.active && !ask->work.done ? asked_by(ask) : NULL;
    timer_stop(&ask->timer);
    ask->awaited = elder != NULL && elder->awaited;
    if (elder != NULL) { /* it wakes us */
        timer_start(ask->task.loop, &ask->timer, &ask->task, ELDER_MS);
        return TASK_WAIT;
    }
    if (!ask->work.active && !ask->work.done)
        work_start(ask->task.loop, &ask->work, &ask->task, look_up, ask);
    if (!ask->work.done)
        return TASK_WAIT;
    ask->work.done = false;
    if (ask->stored_err.code == ERR_NONE &&
        completion_decode(ask->arena, buf_text(&ask->stored), ask->stored.length, &ask->completion,
                          &ask->stored_err) == 0)
        return found(ask);
    buf_reset(&ask->stored);
    if (ask->stored_err.code != ERR_NOT_FOUND)
        return ask_fail(ask, FAULT_FATAL, &ask->stored_err);
    if (ask_fit(ask->model, &ask->request, &ask->stored_err) != 0)
        return ask_fail(ask, FAULT_TOO_LONG, &ask->stored_err);
    if (batch_recall(ask)) {
        task_move(&ask->task, SENDING);
        return TASK_AGAIN;
    }
    bool mails = ask->endpoint == NULL && ask->replay == NULL;
    task_move(&ask->task, mails ? MAILING : ask->replay != NULL ? REPLAYING : WAITING);
    return TASK_AGAIN;
}

/* ---- waiting ---- */

/* Whoever waits looks again when time alone may let a request through. */
static enum task_result wait_for_endpoint(struct ask *ask)
{
    uint64_t retry_ns = ask_looks_ns(ask), now = clock_now_ns();
    timer_stop(&ask->timer);
    if (retry_ns != 0 && !ask->completions->held)
        timer_start(ask->task.loop, &ask->timer, &ask->task,
                    retry_ns > now ? (retry_ns - now) / 1000000 + 1 : 0);
    return TASK_WAIT;
}

/* Its turn came, but the endpoint admits nobody any more: back to the end of the queue, with
 * nothing reserved. */
static enum task_result turn_back(struct ask *ask)
{
    ask_let_go(ask);
    struct store_batch *batch = ask_close_spend(ask, SPEND_RELEASED);
    return batch != NULL ? ask_settle(ask, batch, WAITING) : TASK_AGAIN;
}

static enum task_result step_waiting(struct ask *ask)
{
    struct err err;
    const struct err *blocked = endpoint_blocked(ask->endpoint, ask->model);
    batch_leave(ask);
    if (blocked->code != ERR_NONE)
        return ask_fail(ask, FAULT_FATAL, blocked);
    endpoint_update(ask->endpoint);
    if (ask->impatient && endpoint_is_unavailable(ask->endpoint, ask))
        return ask_fail(ask, FAULT_RETRY, &ask->endpoint->reason);
    if (endpoint_is_avoided(ask->endpoint, ask) && ask_has_others(ask)) {
        ask->moved = true;
        ask->tally->view.moved++;
        return ask_fail(ask, FAULT_RETRY, &ask->endpoint->reason);
    }
    if (!ask->slot.granted && !list_linked(&ask->slot.link))
        (void)slots_acquire(&ask->endpoint->slots, &ask->slot, &ask->task, 1);
    if (!ask->slot.granted)
        return wait_for_endpoint(ask);
    timer_stop(&ask->timer);
    if (!endpoint_admits(ask->endpoint, ask))
        return turn_back(ask);
    if (!key_is_ready(ask->completions, ask->model)) {
        timer_start(ask->task.loop, &ask->timer, &ask->task, KEY_LOOK_MS);
        return TASK_WAIT;
    }
    if (ask->completions->budget != NULL && !ask->spend.open) {
        ask->write = (struct store_write){0};
        task_move(&ask->task, RESERVING);
        return TASK_AGAIN;
    }
    if (ask->model->batch != NULL)
        batch_join(ask);
    else if (ask_send(ask, &err) != 0)
        return ask_fail(ask, FAULT_FATAL, &err);
    task_move(&ask->task, SENDING);
    return TASK_WAIT;
}

static enum task_result step_reserving(struct ask *ask)
{
    struct err err;
    const struct err *blocked = endpoint_blocked(ask->endpoint, ask->model);
    if (!ask->write.active && blocked->code != ERR_NONE)
        return ask_fail(ask, FAULT_FATAL, blocked);
    switch (ask_reserve(ask, &err)) {
    case ASK_WAITS:
        return TASK_WAIT;
    case ASK_BROKE:
        return ask_fail(ask, FAULT_NONE, &err);
    default:
        task_move(&ask->task, WAITING);
        return TASK_AGAIN;
    }
}

static enum task_result step_backing_off(struct ask *ask)
{
    if (ask->timer.armed && endpoint_blocked(ask->endpoint, ask->model)->code == ERR_NONE)
        return TASK_WAIT;
    timer_stop(&ask->timer);
    task_move(&ask->task, WAITING);
    return TASK_AGAIN;
}

/* ---- storing ---- */

enum task_result ask_store(struct ask *ask, struct store_batch *batch, const char *reason)
{
    struct completions *completions = ask->completions;
    struct completion_request sent = ask->request;
    const struct completion *answer = &ask->completion;
    struct completion_origin origin = {
        .use = use_of(ask),
        .provider = ask->model->provider,
        .model = ask->model->name,
        .reason = reason,
        .sample = ask->sample,
        .tries = ask->failures + 1,
        .cost_micro_dollars = ask->endpoint == NULL ? 0
                              : batch != NULL       ? ask->spend.micro_dollars
                                                    : model_cost(ask->model, answer->prompt_tokens,
                                                                 answer->completion_tokens) -
                                                    model_cache_saved(ask->model, answer),
        .elapsed_ns = clock_now_ns() - ask->started_ns};
    if (ask->endpoint != NULL && model_cost(ask->model, 0, 0) < 0)
        origin.cost_micro_dollars = -1;
    sent.max_tokens = ask->endpoint != NULL ? ask_max_tokens(ask) : sent.max_tokens;
    BUF_LOCAL(text, STORED_BYTES_MAX);
    completion_encode(&sent, answer, &origin, &text);
    if (batch == NULL)
        batch = store_batch_new();
    store_batch_put(batch, STORE_COMPLETIONS, ask->key, buf_text(&text), text.length);
    put_draw(ask, batch);
    ask->write = (struct store_write){0};
    store_write_take(completions->writer, &ask->write, &ask->task, batch);
    task_move(&ask->task, STORING);
    return TASK_WAIT;
}

static enum task_result step_storing(struct ask *ask)
{
    if (ask->write.active)
        return TASK_WAIT;
    store_batch_free(ask->write.batch);
    ask->write.batch = NULL;
    if (ask->write.err.code == ERR_NONE || ask->from_store)
        return ask_end(ask);
    return ask_fail(ask, FAULT_NONE, &ask->write.err);
}

/* ---- the task ---- */

static enum task_result cancelled(struct ask *ask)
{
    if (ask->write.active || ask->work.active)
        return TASK_WAIT;
    store_batch_free(ask->write.batch); /* a reservation that could not be written */
    ask->write.batch = NULL;
    if (ask_stops_command(ask) || !batch_leaves(ask))
        return TASK_WAIT;
    if (ask->batch != NULL && ask->task.state == SENDING)
        return ask_step_sending(ask); /* what has come is taken */
    struct store_batch *batch = ask_stop_sending(ask);
    if (ask->err.code == ERR_NONE)
        err_set(&ask->err, ERR_CANCELLED, "stopped");
    ask_let_go(ask);
    return ask_settle(ask, batch, ENDED);
}

static enum task_result ask_step(struct task *task)
{
    struct ask *ask = container_of(task, struct ask, task);
    bool may_stop = task->state != STORING && task->state != SETTLING;
    if (task->state == SETTLING && task->cancel_requested && ask->next != ENDED)
        ask->next = WAITING; /* and from there to the end, since nothing is reserved any more */
    if (task->cancel_requested && may_stop)
        return cancelled(ask);
    switch ((enum ask_state)task->state) {
    case LOOKING_UP:
        return step_looking_up(ask);
    case WAITING:
        return step_waiting(ask);
    case RESERVING:
        return step_reserving(ask);
    case SENDING:
        return ask_step_sending(ask);
    case SETTLING:
        return step_settling(ask);
    case BACKING_OFF:
        return step_backing_off(ask);
    case MAILING:
        return ask_step_mailing(ask);
    case REPLAYING:
        return ask_step_replaying(ask);
    default:
        return step_storing(ask);
    }
}

static const struct task_type ask_type = {"completion", states, moves, ASK_STATES, ask_step, NULL};

void ask_start(struct completions *completions, struct ask *ask, struct task *parent,
               const char *id)
{
    const struct model *model = ask->model;
    bool replays = strcmp(model->provider, "replay") == 0;
    ask->completions = completions;
    ask->arena = arena_new_sized(ARENA_BYTES);
    ask->started_ns = clock_now_ns();
    buf_init(&ask->stored, STORED_BYTES_MAX);
    if (ask->request.model == NULL) {
        ask->request.model = model->wire_name;
        ask->request.temperature = model->temperature;
    }
    if (ask->request.max_tokens == 0)
        ask->request.max_tokens = model->max_tokens;
    ask->request.body = model->body;
    (void)!ask_fit(model, &ask->request, &ask->stored_err); /* step_looking_up() says so */
    completion_key(model->codec != NULL ? model->codec->name : model->provider,
                   model->codec != NULL ? model->base_url : model->source, &ask->request,
                   ask->sample, ask->key);
    if (model->codec != NULL)
        ask->endpoint = completions_endpoint(completions, model);
    else if (replays)
        ask->replay = completions_replay(completions, model->source);
    ask->tally = completions_tally(completions, model);
    ask->tally->endpoint = ask->endpoint;
    list_append(&completions->asks, &ask->all);
    task_start(completions->loop, &ask->task, &ask_type, parent, id);
}

const char *ask_turns(struct arena *arena, const struct ask *ask)
{
    return request_turns(arena, ask->request.earlier, ask->request.prompt, ask->completion.turn);
}

void ask_free(struct ask *ask)
{
    assert(ask->arena == NULL || ask->task.finished);
    arena_free(ask->arena);
    ask->arena = NULL;
}
