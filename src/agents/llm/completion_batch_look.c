/* agents/llm/completion_batch: a batch that the provider has: it is looked at until it has ended,
 * and each result is told to its request. A look that fails is made again while the batch may still
 * have answers: a provider that is away only makes it late. */
#include "agents/llm/completion_batch.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <string.h>

enum { LATE_MS = 15 * 60 * 1000 /* after it was cancelled for being late */ };

/* ---- waiting for it ---- */

static bool is_late(const struct batch *batch, uint64_t by_ms)
{
    const struct batch_terms *terms = batch->model->batch;
    return terms != NULL && clock_wall_ms() > batch->created_ms + terms->wait_ms + by_ms;
}

enum task_result batch_step_resting(struct batch *batch)
{
    bool cancels = batch->stopping || is_late(batch, 0);
    if (batch->id != NULL && cancels && !batch->cancelled)
        return batch_call(batch, CANCELLING, BATCH_CANCEL, batch->id, NULL);
    if (batch->timer.armed)
        return TASK_WAIT;
    if (batch->id == NULL)
        return batch_seek(batch);
    if (is_late(batch, LATE_MS) && batch->cancelled) {
        struct verdict late = {.after_ms = -1, .fault = FAULT_RETRY, .money = SPEND_LOST};
        err_set(&late.err, ERR_TIMEOUT, "no answer within its wait, and it could not be cancelled");
        return batch_dissolve(batch, &late);
    }
    return batch_call(batch, LOOKING, BATCH_LOOK, batch->id, NULL);
}

enum task_result batch_step_cancelling(struct batch *batch)
{
    if (batch->http != NULL && !http_done(batch->http))
        return TASK_WAIT;
    batch->cancelled = true;
    batch->rest_ms = 0;
    log_event(LOG_INFO, "batch.cancelled", batch->name, "%s: what was answered is taken",
              batch->id);
    return batch_rest(batch, 1);
}

/* What cannot be looked at now may be later; the batch itself goes on. */
static enum task_result trouble(struct batch *batch, const struct verdict *verdict)
{
    struct err words = verdict->err;
    ask_hide_key(batch->model, &words);
    if (verdict->fault == FAULT_MODEL) { /* 404 */
        struct verdict gone = *verdict;
        gone.fault = FAULT_RETRY;
        gone.money = SPEND_LOST;
        return batch_dissolve(batch, &gone);
    }
    if (verdict->fault == FAULT_KEY && !batch->renewed && key_was_refused(batch->model)) {
        batch->renewed = true;
        (void)key_is_ready(batch->completions, batch->model);
        return batch_rest(batch, BATCH_SOON_MS);
    }
    if (verdict->fault == FAULT_KEY || verdict->fault == FAULT_QUOTA || verdict->tls)
        return batch_keep(batch, verdict->fault, &verdict->err);
    log_event(batch->troubles++ == 0 ? LOG_WARN : LOG_DEBUG, "batch.unseen", batch->name,
              "%s cannot be looked at now: %s", batch->id, words.message);
    uint64_t ms = batch_next_look_ms(batch);
    return batch_rest(batch, verdict->after_ms > (int64_t)ms ? (uint64_t)verdict->after_ms : ms);
}

static void take_result(struct batch *batch, const struct value *object)
{
    struct batch_result result = {.id = ""};
    struct batch_member *member = NULL;
    batch->format->result(batch->scratch, object, &result);
    for (size_t i = 0; member == NULL && i < batch->count; i++)
        if (!batch->members[i]->ended && strcmp(batch->members[i]->key, result.id) == 0)
            member = batch->members[i];
    if (member == NULL)
        return;
    struct verdict verdict = {.after_ms = -1, .alive = true, .money = SPEND_RELEASED};
    if (result.answer != NULL) {
        JSON_LOCAL(json, text, BATCH_BODY_MOST);
        json_value(&json, result.answer);
        member->answer = arena_strndup(batch->arena, buf_text(&text), text.length);
    } else {
        verdict.fault = result.fault != FAULT_NONE ? result.fault : FAULT_RETRY;
        err_set(&verdict.err, ERR_PROTOCOL, "in a batch: %s",
                result.reason != NULL ? result.reason : "no answer");
    }
    batch_end_member(member, &verdict);
}

static enum task_result finish(struct batch *batch)
{
    struct verdict left = {.after_ms = -1, .fault = FAULT_RETRY, .alive = true};
    size_t answered = 0;
    left.money = batch->left != NULL ? SPEND_RELEASED : SPEND_LOST;
    err_set(&left.err, ERR_PROTOCOL, "in a batch: %s",
            batch->left != NULL ? batch->left : "it ended without a word of this request");
    for (size_t i = 0; i < batch->count; i++)
        answered += batch->members[i]->answer != NULL;
    uint64_t now = clock_wall_ms();
    log_event(LOG_INFO, "batch.ended", batch->name, "%s: %zu of %zu answered after %.0f s",
              batch->id, answered, batch->count,
              now > batch->created_ms ? (double)(now - batch->created_ms) / 1000 : 0);
    return batch_hand_out(batch, &left);
}

static enum task_result fetch(struct batch *batch)
{
    for (size_t i = 0; i < BATCH_SOURCES; i++)
        if (batch->sources[i] != NULL)
            return batch_call(batch, FETCHING, BATCH_FETCH, batch->sources[i], NULL);
    return finish(batch);
}

enum task_result batch_step_looking(struct batch *batch)
{
    struct batch_view view;
    struct verdict verdict;
    if (batch->http != NULL && !http_done(batch->http))
        return TASK_WAIT;
    if (!batch_heard_view(batch, &view, &verdict))
        return trouble(batch, &verdict);
    batch->troubles = 0;
    batch->renewed = false;
    batch->done = view.done;
    if (view.fault != FAULT_NONE) {
        verdict = (struct verdict){.after_ms = -1, .fault = view.fault, .alive = true};
        verdict.money = SPEND_RELEASED;
        err_set(&verdict.err, ERR_PROTOCOL, "the batch failed: %s", view.reason);
        return batch_dissolve(batch, &verdict);
    }
    if (!view.ended)
        return batch_rest(batch, batch_next_look_ms(batch));
    for (size_t i = 0; i < BATCH_SOURCES; i++)
        batch->sources[i] =
            view.sources[i] != NULL ? arena_strdup(batch->arena, view.sources[i]) : NULL;
    batch->left = view.left;
    for (size_t i = 0; view.results != NULL && i < view.results->count; i++)
        take_result(batch, view.results->items[i]);
    batch_drop_call(batch);
    return fetch(batch);
}

enum task_result batch_step_fetching(struct batch *batch)
{
    struct verdict verdict;
    size_t length;
    if (batch->http != NULL && !http_done(batch->http))
        return TASK_WAIT;
    const char *body = batch_heard(batch, &length, &verdict);
    if (body == NULL)
        return trouble(batch, &verdict);
    for (const char *end = body + length; body < end;) {
        const char *stop = memchr(body, '\n', (size_t)(end - body));
        size_t line = stop != NULL ? (size_t)(stop - body) : (size_t)(end - body);
        arena_free(batch->scratch);
        batch->scratch = arena_new();
        const struct value *object = batch_parse(batch->scratch, body, line);
        if (object != NULL)
            take_result(batch, object);
        body += line + (stop != NULL);
    }
    batch->sources[batch->sources[0] != NULL ? 0 : 1] = NULL;
    batch_drop_call(batch);
    return fetch(batch);
}
