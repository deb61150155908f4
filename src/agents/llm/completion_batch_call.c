/* agents/llm/completion_batch: what a batch asks its provider, and how its members learn of an end.
 */
#include "agents/llm/completion_batch.h"

#include "agents/llm/providers/text.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>

enum { FIRST_BYTE_MS = 2 * 60 * 1000, FIRST_LOOK_MS = 5000 };

/* ---- calls ---- */

struct batch_place batch_place_of(const struct batch *batch)
{
    return (struct batch_place){.codec = batch->model->codec,
                                .base_url = batch->base_url,
                                .key = model_key(batch->model),
                                .model = batch->wire_name,
                                .name = batch->name};
}

/* Moves to `state`, in which what the call says is awaited. */
enum task_result batch_call(struct batch *batch, enum batch_state state, enum batch_step step,
                            const char *what, const struct buf *body)
{
    struct completions *completions = batch->completions;
    const struct batch_place place = batch_place_of(batch);
    struct err err;
    arena_free(batch->scratch);
    batch->scratch = arena_new();
    const struct batch_call called = batch_call_of(batch->scratch, &place, step, what);
    const struct http_spec spec = {.method = called.method,
                                   .url = called.url,
                                   .headers = called.headers,
                                   .body = body != NULL ? buf_text(body) : NULL,
                                   .body_length = body != NULL ? body->length : 0,
                                   .connect_ms = completions->connect_ms,
                                   .first_byte_ms = FIRST_BYTE_MS,
                                   .between_bytes_ms = completions->between_bytes_ms,
                                   .body_max = BATCH_BODY_MOST,
                                   .ca_file = completions->ca_file};
    batch->http = http_start(completions->http, &batch->task, &spec, &err);
    task_move(&batch->task, (int)state);
    return batch->http != NULL ? TASK_WAIT : TASK_AGAIN;
}

void batch_drop_call(struct batch *batch)
{
    http_free_request(batch->http);
    batch->http = NULL;
}

const struct value *batch_parse(struct arena *arena, const char *text, size_t length)
{
    struct value *root = NULL;
    BUF_LOCAL(clean, (size_t)BATCH_BODY_MOST * 3);
    text_clean_json(text, length, &clean);
    if (value_parse_json(arena, "batch", buf_text(&clean), clean.length, &root, NULL) != 0)
        return NULL;
    return root->kind == VALUE_MAP ? root : NULL;
}

/* The answer's body; NULL, with the verdict, where it is none. */
const char *batch_heard(struct batch *batch, size_t *length, struct verdict *verdict)
{
    const struct http_request *http = batch->http;
    *verdict = (struct verdict){.after_ms = -1, .fault = FAULT_FATAL, .money = SPEND_RELEASED};
    if (http == NULL) {
        err_set(&verdict->err, ERR_PROTOCOL, "no request could be made of it");
        return NULL;
    }
    const char *body = http_body(http, length);
    if (http_error(http)->code != ERR_NONE) {
        verdict->err = *http_error(http);
        verdict->tls = http_error_is_tls(http);
        verdict->fault = verdict->tls || verdict->err.code == ERR_LIMIT ? FAULT_FATAL : FAULT_RETRY;
        return NULL;
    }
    if (http_status(http) == 200)
        return body;
    ask_judge_status(http, verdict);
    return NULL;
}

/* The same as one object. */
const struct value *batch_heard_object(struct batch *batch, struct verdict *verdict)
{
    size_t length;
    const char *body = batch_heard(batch, &length, verdict);
    const struct value *root = body != NULL ? batch_parse(batch->scratch, body, length) : NULL;
    if (body != NULL && root == NULL) {
        verdict->fault = FAULT_RETRY;
        err_set(&verdict->err, ERR_PROTOCOL, "the answer is no JSON object");
    }
    return root;
}

bool batch_heard_view(struct batch *batch, struct batch_view *view, struct verdict *verdict)
{
    const struct batch_place place = batch_place_of(batch);
    const struct value *root = batch_heard_object(batch, verdict);
    if (root == NULL)
        return false;
    verdict->fault = FAULT_RETRY;
    return batch_read_view(batch->scratch, &place, root, view, &verdict->err) == 0;
}

/* ---- ends ---- */

void batch_end_member(struct batch_member *member, const struct verdict *verdict)
{
    if (member->ended)
        return;
    member->ended = true;
    member->fault = *verdict;
    if (member->ask != NULL)
        task_complete(&member->ask->task);
}

/* All that have no end yet get this one. The first tells the endpoint, for all. */
enum task_result batch_hand_out(struct batch *batch, const struct verdict *verdict)
{
    struct verdict told = *verdict;
    batch_drop_call(batch);
    timer_stop(&batch->timer);
    timer_stop(&batch->grace);
    batch->kept = verdict->money == SPEND_KEPT;
    for (size_t i = 0; i < batch->count; i++) {
        bool tells = !batch->members[i]->ended && batch->members[i]->ask != NULL;
        batch_end_member(batch->members[i], &told);
        told.told = told.told || tells;
    }
    task_move(&batch->task, HANDING);
    return TASK_AGAIN;
}

/* Nothing that is worth money came of it. */
enum task_result batch_dissolve(struct batch *batch, const struct verdict *verdict)
{
    struct err words = verdict->err;
    ask_hide_key(batch->model, &words);
    log_event(LOG_WARN, "batch.failed", batch->name, "%zu request%s of %s: %s", batch->count,
              batch->count == 1 ? "" : "s", batch->wire_name, words.message);
    return batch_hand_out(batch, verdict);
}

/* What comes of it is not known, and a later process finds out. */
enum task_result batch_keep(struct batch *batch, enum fault fault, const struct err *err)
{
    struct verdict verdict = {.after_ms = -1, .fault = fault, .money = SPEND_KEPT, .err = *err};
    ask_hide_key(batch->model, &verdict.err);
    log_event(LOG_WARN, "batch.left", batch->name,
              "%s goes on at the provider, and resume takes what it answers: %s",
              batch->id != NULL ? batch->id : batch->name, verdict.err.message);
    return batch_hand_out(batch, &verdict);
}

/* ---- between two looks ---- */

enum task_result batch_rest(struct batch *batch, uint64_t ms)
{
    batch_drop_call(batch);
    (void)key_is_ready(batch->completions, batch->model); /* by the next look it is */
    timer_stop(&batch->timer);
    timer_start(batch->task.loop, &batch->timer, &batch->task, ms);
    task_move(&batch->task, RESTING);
    return TASK_WAIT;
}

uint64_t batch_next_look_ms(struct batch *batch)
{
    uint64_t poll_ms = batch->model->batch != NULL ? batch->model->batch->poll_ms : FIRST_LOOK_MS;
    uint64_t ms = batch->rest_ms > 0 ? batch->rest_ms + batch->rest_ms / 2 : FIRST_LOOK_MS;
    batch->rest_ms = ms < poll_ms ? ms : poll_ms;
    return batch->stopping && batch->rest_ms > BATCH_SOON_MS ? BATCH_SOON_MS : batch->rest_ms;
}
