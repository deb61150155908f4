/* agents/search/candidate/candidate: one candidate on its way. Every move is committed before the
 * next step starts, so a run that dies has at most one step of each candidate to do again.
 *
 *   proposed -> writing -> compiling -> checking -> timing -> profiling -> kept
 *                  ^___________|___________|__________|   (repair, at most `repairs` times)
 *
 * From each of them it may be rejected or failed; a point that is looked at also dropped.
 *
 * A candidate of the built-in proposer is written already, and goes from proposed to compiling.
 * The worker walks from compiling to profiling by itself; its stages are committed as they are
 * heard. A candidate that an earlier process left begins where its record says that it stood.
 */
#include "agents/search/candidate/candidate.h"

#include <string.h>

static const char *const states[ATTEMPT_STATES] = {"proposed", "writing",   "compiling", "checking",
                                                   "timing",   "profiling", "kept",      "rejected",
                                                   "failed",   "dropped"};
#define ENDS (1u << KEPT | 1u << REJECTED | 1u << FAILED | 1u << DROPPED)
static const uint32_t moves[ATTEMPT_STATES] = {
    [PROPOSED] = 1u << WRITING | 1u << COMPILING | ENDS,
    [WRITING] = 1u << COMPILING | 1u << REJECTED | 1u << FAILED,
    [COMPILING] = 1u << CHECKING | 1u << TIMING | 1u << PROFILING | 1u << WRITING | ENDS,
    [CHECKING] = 1u << TIMING | 1u << PROFILING | 1u << COMPILING | 1u << WRITING | ENDS,
    [TIMING] = 1u << PROFILING | 1u << COMPILING | 1u << WRITING | ENDS,
    [PROFILING] = 1u << COMPILING | 1u << WRITING | ENDS,
};

static void attempt_put(struct attempt *attempt, struct store_batch *batch, int state)
{
    attempt->record.state = states[state];
    BUF_LOCAL(text, 1 << 20);
    candidate_record_encode(&attempt->record, &text);
    store_batch_put(batch, STORE_CANDIDATES, attempt->record.id, buf_text(&text), text.length);
}

/* Writes the candidate in its next state; the task moves there once that is on disk. */
static void attempt_commit(struct attempt *attempt, struct store_batch *batch, int state)
{
    attempt_put(attempt, batch, state);
    attempt->committing = true;
    attempt->next_state = state;
    store_write_take(attempt->search->writer, &attempt->write, &attempt->task, batch);
}

static void put_idea_and_source(struct attempt *attempt, struct store_batch *batch)
{
    struct arm *arm = attempt->arm;
    bool new = !*attempt->record.attempt; /* else of the one that its agent works on */
    BUF_LOCAL(text, 1 << 20);
    idea_record_encode(&attempt->idea, &text);
    if (new)
        store_batch_put(batch, STORE_IDEAS, attempt->idea.id, buf_text(&text), text.length);
    if (arm && !arm->stored)
        store_batch_put(batch, STORE_SOURCES, arm->source_hash, arm->text, arm->length);
    if (arm)
        arm->stored = true;
    if (new)
        search_event(attempt->search, batch, LOG_INFO, "idea.new", attempt->idea.id, "%s",
                     attempt->idea.title);
}

static void leave_place(struct attempt *attempt)
{
    slots_release(&attempt->slot);
    slots_release(&attempt->twin_slot);
    search_lane_leave(attempt->place);
    attempt->place = NULL;
    attempt->in_lane = false;
}

static enum task_result attempt_end(struct attempt *attempt)
{
    struct search *search = attempt->search;
    leave_place(attempt);
    list_remove(&attempt->link);
    list_append(&search->ended, &attempt->link);
    search->in_flight--;
    search_count(search, attempt);
    task_wake(&search->task); /* whose child it may not be: a round's */
    return TASK_DONE;
}

/* Waits for a place in the lanes, then commits the move to COMPILING. */
static enum task_result enter_lane(struct attempt *attempt)
{
    struct search *search = attempt->search;
    attempt->in_lane = true;
    if (!attempt->slot.granted && attempt->slot.owner == NULL &&
        !search_lanes_enter(search, &attempt->slot, &attempt->task))
        return TASK_WAIT;
    if (!attempt->slot.granted)
        return TASK_WAIT;
    attempt->place = search_lane_pick(search);
    struct store_batch *batch = store_batch_new();
    if (attempt->writing)
        put_idea_and_source(attempt, batch);
    search_event(search, batch, LOG_DEBUG, "candidate.move", attempt->record.id, "compiling");
    attempt_commit(attempt, batch, COMPILING);
    return TASK_WAIT;
}

/* Where an earlier process has left it. */
static enum task_result step_recalled(struct attempt *attempt)
{
    int state = 0;
    attempt->stored = true;
    switch (search_recall_state(attempt, &state)) {
    case RECALL_ENDED:
        attempt->answered = true;
        task_move(&attempt->task, state);
        return attempt_end(attempt);
    case RECALL_WRITTEN:
        attempt->written = true;
        task_move(&attempt->task, WRITING);
        return TASK_AGAIN;
    case RECALL_WRITING:
        task_move(&attempt->task, WRITING);
        return TASK_AGAIN;
    default:
        attempt->stored = false;
        attempt->recalled = NULL;
        return TASK_AGAIN;
    }
}

static enum task_result step_proposed(struct attempt *attempt)
{
    if (!attempt->stored && attempt->recalled)
        return step_recalled(attempt);
    if (!attempt->stored) {
        struct store_batch *batch = store_batch_new();
        put_idea_and_source(attempt, batch);
        attempt->stored = true;
        attempt_commit(attempt, batch, PROPOSED);
        return TASK_WAIT;
    }
    if (!attempt->writing)
        return enter_lane(attempt);
    struct store_batch *batch = store_batch_new();
    search_event(attempt->search, batch, LOG_DEBUG, "candidate.move", attempt->record.id,
                 "writing");
    attempt_commit(attempt, batch, WRITING);
    return TASK_WAIT;
}

static void attempt_finish(struct attempt *attempt, int state);

static enum task_result step_writing(struct attempt *attempt)
{
    if (attempt->written)
        return enter_lane(attempt);
    switch (writing_step(attempt)) {
    case WRITING_WAIT:
        return TASK_WAIT;
    case WRITING_LEFT:
        attempt->abandoned = true;
        return TASK_AGAIN;
    case WRITING_FAILED:
        attempt_finish(attempt, FAILED);
        return TASK_WAIT;
    default:
        break;
    }
    attempt->written = true;
    attempt_identify(attempt);
    if (twins_repeats(attempt, writing_parent(attempt->writing))) {
        completions_note_nothing(&attempt->writing->ask, "a source that was there before");
        attempt_finish(attempt, REJECTED);
        return TASK_WAIT;
    }
    return enter_lane(attempt);
}

/* A tune also says what the others are like; a search wants the fastest, of as many as there is
 * time for. What a model begins from is checked and timed, however slow. */
static double looked_at(const struct search *search)
{
    const double of_a_tune = 1.1, of_a_search = 1.03;
    if (search->options.kernel)
        return search->options.stable ? 0 : of_a_tune;
    return search_writes(search) ? 0 : of_a_search;
}

static bool attempt_submit(struct attempt *attempt)
{
    struct search *search = attempt->search;
    const struct attempt *best = search->best;
    int64_t most = search->options.budget_evaluations;
    if (most > 0 && search->evaluations >= most) {
        search_cap_evaluations(search);
        return false;
    }
    search->evaluations++;
    attempt->record.evaluations++;
    attempt->request = (struct lane_request){.op = LANE_EVALUATE,
                                             .id = attempt->record.id,
                                             .name = attempt->arm->name,
                                             .source = attempt->arm->text,
                                             .source_length = attempt->arm->length,
                                             .tune = attempt->record.tune,
                                             .effort = EFFORT_SEARCH,
                                             .profile = !search->options.kernel,
                                             .best_ns = best ? best->record.time_ns : 0,
                                             .within_ms = search_within_reserve_ms(search),
                                             .of_run = true,
                                             .late = looked_at(search)};
    attempt->submitted = true;
    lane_submit(attempt->place->lane, &attempt->request, &attempt->task);
    return true;
}

/* Once it has its place: measured, unless another one is being. */
static enum task_result start_evaluating(struct attempt *attempt)
{
    if (attempt->task.state != COMPILING)
        task_move(&attempt->task, COMPILING);
    enum twins_turn turn = twins_turn(attempt);
    if (turn != TURN_MEASURE)
        return turn == TURN_WAIT ? TASK_WAIT : TASK_AGAIN;
    if (!attempt_submit(attempt)) {
        attempt->abandoned = true;
        return TASK_AGAIN;
    }
    return TASK_WAIT;
}

/* What the evaluation says goes into the records, all in one batch with the last move. Without an
 * evaluation the reason stands in the record already, or in the request's error. */
static void attempt_finish(struct attempt *attempt, int state)
{
    struct search *search = attempt->search;
    struct store_batch *batch = store_batch_new();
    const struct evaluation *evaluation = &attempt->request.evaluation;
    struct candidate_record *record = &attempt->record;
    if (attempt->request.err.code == ERR_NONE && attempt->request.arena) {
        record->verdict = verdict_name(evaluation->verdict);
        record->reason = arena_strdup(attempt->arena, evaluation->reason);
        record->time_ns = evaluation->time_ns.samples ? evaluation->time_ns.median : 0;
        record->time_high = evaluation->time_ns.samples ? evaluation->time_ns.high : 0;
        record->speedup = evaluation->speedup.samples ? evaluation->speedup.median : 0;
        record->speedup_low = evaluation->speedup.samples ? evaluation->speedup.low : 0;
        record->speedup_high = evaluation->speedup.samples ? evaluation->speedup.high : 0;
        record->dropped = evaluation->dropped;
        record->outside =
            evaluation->outside && !attempt->writing; /* whose first point has to be one */
        JSON_LOCAL(json, text, 64 << 20);
        evaluation_to_json(evaluation, &json);
        store_batch_put(batch, STORE_EVALUATIONS, record->id, buf_text(&text), text.length);
        twins_tell(attempt, buf_text(&text));
    } else {
        record->verdict = verdict_name(state == REJECTED ? VERDICT_REJECTED : VERDICT_FAILED);
        if (attempt->request.err.code)
            record->reason = arena_strdup(attempt->arena, attempt->request.err.message);
    }
    record->failure = record->diagnostics = "";
    if (state == WRITING && attempt->writing)
        record->failure = writing_failure(attempt->writing, &record->diagnostics);
    slots_release(&attempt->twin_slot);
    if (state >= KEPT && !*record->attempt) /* the one that it belongs to teaches */
        search_lesson_put(attempt, state == KEPT, batch);
    search_event(search, batch, state == KEPT ? LOG_INFO : LOG_DEBUG, "candidate.move", record->id,
                 "%s%s%s", states[state], *record->reason ? ": " : "", record->reason);
    attempt->answered = state >= KEPT;
    attempt_commit(attempt, batch, state);
}

/* What a prompt for its repair says of it. */
static const char *failure_words(const struct evaluation *evaluation)
{
    static const char wrong[] = "wrong result: ";
    if (evaluation->stage == STAGE_PARSE)
        return "could not be read";
    if (evaluation->stage == STAGE_COMPILE)
        return PROMPT_NOT_COMPILED;
    if (evaluation->verdict != VERDICT_REJECTED)
        return "did not run to its end";
    return strncmp(evaluation->reason, wrong, sizeof wrong - 1) == 0 ? "gave a wrong result"
                                                                     : "ran, and was refused";
}

/* A worker that died, or a fault of ours, costs this step only. */
static bool attempt_retries(struct attempt *attempt)
{
    const struct lane_request *request = &attempt->request;
    bool died = request->err.code == ERR_CHILD;
    bool ours = request->err.code == ERR_NONE && request->evaluation.ours;
    if (!(died || ours) || attempt->abandoned)
        return false;
    /* Most likely it was the one being measured; who waited behind it pays a part, or one that
     * breaks the worker from there would do so for ever. */
    enum { WAITED = 1, MEASURED = 3 };
    attempt->deaths += ours || request->stage >= STAGE_CHECK ? MEASURED : WAITED;
    if (attempt->deaths > MEASURED * WORKER_DEATHS_MAX)
        return false;
    log_event(LOG_WARN, "candidate.retry", attempt->record.id, "%s",
              died ? request->err.message : request->evaluation.reason);
    arena_free(attempt->request.arena);
    attempt->request.arena = NULL;
    attempt->submitted = false;
    return true;
}

static enum task_result step_evaluating(struct attempt *attempt)
{
    static const int of_stage[STAGES] = {
        [STAGE_PARSE] = COMPILING, [STAGE_COMPILE] = COMPILING, [STAGE_CHECK] = CHECKING,
        [STAGE_TIME] = TIMING,     [STAGE_SANITIZE] = CHECKING, [STAGE_PROFILE] = PROFILING};
    if (!attempt->submitted)
        return start_evaluating(attempt);
    if (!attempt->request.done) {
        int state = of_stage[attempt->request.stage];
        if (state > attempt->task.state) {
            struct store_batch *batch = store_batch_new();
            attempt_commit(attempt, batch, state);
        }
        return TASK_WAIT;
    }
    if (attempt_retries(attempt))
        return TASK_AGAIN;
    search_learn_cost(attempt->search, &attempt->request);
    const struct evaluation *evaluation = &attempt->request.evaluation;
    int state = attempt->request.err.code                 ? FAILED
                : evaluation->verdict == VERDICT_KERNEL   ? KEPT
                : evaluation->verdict == VERDICT_REJECTED ? REJECTED
                : evaluation->verdict == VERDICT_DROPPED  ? DROPPED
                                                          : FAILED;
    if ((state == REJECTED || state == FAILED) && attempt->request.err.code == ERR_NONE &&
        writing_repair(attempt, failure_words(evaluation), evaluation->reason, evaluation->details))
        state = WRITING;
    attempt_finish(attempt, state);
    return TASK_WAIT;
}

/* Back at the desk: the lane is free for others meanwhile. */
static void leave_lane(struct attempt *attempt)
{
    leave_place(attempt);
    attempt->submitted = attempt->written = false;
    arena_free(attempt->request.arena);
    attempt->request = (struct lane_request){0};
}

static enum task_result attempt_step(struct task *task)
{
    struct attempt *attempt = container_of(task, struct attempt, task);
    if (attempt->committing) {
        if (attempt->write.active)
            return TASK_WAIT;
        attempt->committing = false;
        if (attempt->write.err.code) {
            store_batch_free(attempt->write.batch);
            search_fail(attempt->search, &attempt->write.err);
            return attempt_end(attempt);
        }
        if (attempt->next_state == WRITING && task->state > WRITING)
            leave_lane(attempt);
        if (attempt->next_state != task->state)
            task_move(task, attempt->next_state);
    }
    if (task->state >= KEPT)
        return attempt_end(attempt);
    if (attempt->abandoned && !writing_busy(attempt->writing) &&
        (!attempt->submitted || attempt->request.done)) {
        /* Stays in the store in the state it had: a resumed run would take it from there. */
        return attempt_end(attempt);
    }
    return task->state == PROPOSED  ? step_proposed(attempt)
           : task->state == WRITING ? step_writing(attempt)
                                    : step_evaluating(attempt);
}

const struct task_type attempt_type = {"candidate",    states,       moves,
                                       ATTEMPT_STATES, attempt_step, NULL};
