/* agents/search: a run, from its first line in the store to its last.
 *
 *   preparing (worker, problem, ceilings) -> searching (attempts come and go)
 *     -> verifying (the champion once more) -> closing (last record, lane) -> done
 *
 * A stop or an error goes to closing from wherever the run is, once what is under way has ended.
 */
#include "agents/search_private.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PREPARING, SEARCHING, VERIFYING, CLOSING, DONE, STATES };
static const char *const states[STATES] = {"preparing", "searching", "verifying the champion",
                                           "closing", "done"};
static const uint32_t moves[STATES] = {
    1u << SEARCHING | 1u << CLOSING, 1u << VERIFYING | 1u << CLOSING, 1u << CLOSING, 1u << DONE, 0};

enum { SOFT_STOP_MS = 6000 };

void search_fail(struct search *search, const struct err *err)
{
    if (search->err.code == ERR_NONE)
        search->err = *err;
    task_wake(&search->task);
}

bool search_stopping(const struct search *search)
{
    return search->stops > 0 || search->err.code != ERR_NONE;
}

/* ---- records ---- */

void search_event(struct search *search, struct store_batch *batch, enum log_level level,
                  const char *kind, const char *subject, const char *format, ...)
{
    struct buf message, text;
    struct json json;
    va_list arguments;
    buf_init(&message, 1024);
    buf_init(&text, 8192);
    va_start(arguments, format);
    buf_addv(&message, format, arguments);
    va_end(arguments);
    json_init(&json, &text);
    json_object(&json);
    json_put_int(&json, "wall_ms", (int64_t)clock_wall_ms());
    json_put_text(&json, "kind", kind);
    json_put_text(&json, "subject", subject);
    json_put_text(&json, "message", buf_text(&message));
    json_object_end(&json);
    char key[64];
    snprintf(key, sizeof key, "%s-%lld", search->id, (long long)++search->event_number);
    store_batch_put(batch, STORE_EVENTS, key, buf_text(&text), text.length);
    log_event(level, kind, subject, "%s", buf_text(&message));
    buf_free(&message);
    buf_free(&text);
}

double search_elapsed_ms(const struct search *search)
{
    return (double)(clock_now_ns() - search->started_ns) / 1e6;
}

void search_put_run(struct search *search, struct store_batch *batch)
{
    struct buf text;
    struct run_record *record = &search->record;
    record->elapsed_ms = search_elapsed_ms(search);
    record->lane_busy = search->lane ? lane_busy_ratio(search->lane) : 0;
    record->best = search->best ? search->best->record.id : "";
    buf_init(&text, 1 << 20);
    run_record_encode(record, &text);
    store_batch_put(batch, STORE_RUNS, search->id, buf_text(&text), text.length);
    buf_free(&text);
}

/* ---- preparing ---- */

/* A worker or a reference that died while it opened the problem is asked again. Nothing is being
 * measured yet, so that a stop need not wait for the answer. */
static bool opens_again(struct search *search)
{
    if (search_stopping(search)) {
        if (search->open.active)
            lane_cancel(search->lane, &search->open);
        return false;
    }
    if (!search->open.done || search->open.err.code != ERR_CHILD ||
        ++search->open.deaths > WORKER_DEATHS_MAX)
        return false;
    log_event(LOG_WARN, "run.retry", search->id, "%s", search->open.err.message);
    arena_free(search->open.arena);
    lane_submit(search->lane, &search->open, &search->task);
    return true;
}

static enum task_result step_preparing(struct search *search)
{
    if (!search->written_start) {
        struct store_batch *batch = store_batch_new();
        search_event(search, batch, LOG_INFO, "run.start", search->id, "%s on %s, provider %s",
                     search->record.problem, search->options.backend, search->record.provider);
        search_put_run(search, batch);
        search->written_start = true;
        store_write_take(search->writer, &search->write, &search->task, batch);
        if (search_open_lane(search))
            return TASK_WAIT;
    }
    if (opens_again(search) || search->write.active || search->open.active)
        return TASK_WAIT;
    if (search->write.err.code && search->err.code == ERR_NONE)
        search->err = search->write.err;
    if (search->open.err.code && search->stops == 0 && search->err.code == ERR_NONE)
        search->err = search->open.err;
    bool model = search->options.idea_models && search->options.idea_models->count > 0;
    if (!search_stopping(search) && search_opened(search, &search->err) == 0 &&
        (!model || search_model_open(search, &search->err) == 0)) {
        struct store_batch *batch = store_batch_new();
        search_put_ceilings(search, batch);
        store_write_take(search->writer, &search->write, &search->task, batch);
        task_move(&search->task, SEARCHING);
        return TASK_AGAIN;
    }
    task_move(&search->task, CLOSING);
    return TASK_AGAIN;
}

/* ---- searching ---- */

static void new_best(struct search *search, struct attempt *attempt)
{
    const struct candidate_record *best = search->best ? &search->best->record : NULL;
    const struct candidate_record *record = &attempt->record;
    if (best && record->speedup_low <= best->speedup_low)
        return;
    search->best = attempt;
    search->record.baseline = attempt->request.evaluation.baseline;
    search->record.time_ns = record->time_ns;
    search->record.speedup = record->speedup;
    search->record.speedup_low = record->speedup_low;
    search->record.speedup_high = record->speedup_high;
    log_event(LOG_INFO, "run.best", record->id, "%.3f us, %.3fx %s (95 %%: %.3f to %.3f)",
              record->time_ns / 1e3, record->speedup, search->record.baseline, record->speedup_low,
              record->speedup_high);
}

/* An idea of the built-in proposer leaves nothing to implement in several ways, so a round of it
 * has `branching x implementations` ideas. */
static int64_t round_size(const struct search *search)
{
    return search->options.branching * search->options.implementations;
}

/* A kernel that a model wrote becomes an arm: from now on the proposer tunes its numbers too. */
static void teach(struct search *search, struct attempt *attempt, bool kernel)
{
    struct arm *arm = attempt->arm;
    if (attempt->writing && kernel && arm->number < 0 && arm->candidate->tune_count > 0)
        search_arm_add(search, arm);
    if (arm && arm->number >= 0)
        proposer_tell(search->proposer, (size_t)arm->number, &attempt->tune,
                      kernel ? attempt->record.time_ns : 0);
}

/* What has ended teaches the proposer; kernels stay, the others' memory goes. */
static void reap(struct search *search)
{
    struct link *link;
    while ((link = list_pop(&search->finished))) {
        struct attempt *attempt = container_of(link, struct attempt, link);
        struct run_record *run = &search->record;
        bool kernel = attempt_is_kernel(attempt);
        if (!attempt->answered) {
            if (attempt->arm && attempt->arm->number >= 0)
                proposer_withdraw(search->proposer, (size_t)attempt->arm->number, &attempt->tune);
            attempt_free(attempt);
            continue;
        }
        search_remember(search, attempt);
        teach(search, attempt, kernel);
        if (run->evaluated++ == 0)
            search->first_ended_ms = search_elapsed_ms(search);
        if (kernel)
            run->kept++;
        else if (strcmp(attempt->record.verdict, "rejected") == 0)
            run->rejected++;
        else
            run->failed++;
        if (!kernel) {
            attempt_free(attempt);
            continue;
        }
        list_append(&search->kept, &attempt->link);
        new_best(search, attempt);
    }
}

int64_t search_attempts_most(const struct search *search)
{
    const struct search_options *o = &search->options;
    int64_t most = round_size(search) * o->rounds;
    if (o->budget_evaluations > 0 && o->budget_evaluations < most)
        most = o->budget_evaluations;
    return o->dry_run ? 1 : most;
}

/* A run-off and a champion's measurement cost about as much as a dozen evaluations. */
static bool leaves_too_little(const struct search *search)
{
    enum { FINAL_EVALUATIONS = 12 };
    double elapsed = search_elapsed_ms(search), first = search->first_ended_ms;
    if (search->options.budget_ms <= 0 || !search->options.final || search->record.evaluated < 3)
        return false;
    double mean = (elapsed - first) / (double)(search->record.evaluated - 1);
    return elapsed + FINAL_EVALUATIONS * mean > (double)search->options.budget_ms;
}

static bool wants_more(struct search *search)
{
    const struct search_options *o = &search->options;
    if (search_stopping(search) || search->budget_reached || search->exhausted)
        return false;
    if (search->deadline.fired || leaves_too_little(search)) {
        search->budget_reached = true;
        return false;
    }
    if (search->proposed < search_attempts_most(search))
        return true;
    search->budget_reached = o->budget_evaluations > 0 && !o->dry_run &&
                             search->proposed >= o->budget_evaluations &&
                             search->proposed < round_size(search) * o->rounds;
    return false;
}

static void note_round(struct search *search)
{
    int64_t round = search->proposed / round_size(search) + 1;
    if (round == search->record.round)
        return;
    search->record.round = round;
    log_event(LOG_INFO, "round.start", search->id, "round %lld of %lld", (long long)round,
              (long long)search->options.rounds);
}

/* With a model: the starts' first looks, then rounds; what those leave of the lane goes to tuning.
 */
static void propose_with_model(struct search *search)
{
    struct proposal proposal;
    bool first = search->record.round == 0;
    if (search->deadline.fired || leaves_too_little(search) ||
        (search->options.budget_evaluations > 0 &&
         search->record.evaluated >= search->options.budget_evaluations))
        search->budget_reached = true;
    if (search->budget_reached)
        search_model_stop(search);
    while (first && search->proposed < (int64_t)search->arm_count && !search->budget_reached &&
           proposer_next(search->proposer, &proposal))
        attempt_start(search, &proposal);
    if (!search_model_rounds(search) || search->record.round == 0 || search->budget_reached)
        return;
    while (search->lane_load < LANE_DEPTH - 1 && search->tuned < round_size(search) &&
           proposer_next(search->proposer, &proposal)) {
        search->tuned++;
        attempt_start(search, &proposal);
    }
}

static void propose(struct search *search)
{
    if (search->completions) {
        propose_with_model(search);
        return;
    }
    while (search->lane_load < LANE_DEPTH && wants_more(search)) {
        struct proposal proposal;
        if (!proposer_next(search->proposer, &proposal)) {
            search->exhausted = search->in_flight == 0;
            break;
        }
        note_round(search);
        attempt_start(search, &proposal);
    }
}

/* A soft stop gives what is being measured some time to end. True when that time is over. */
static bool out_of_patience(struct search *search)
{
    bool at_once = search->stops > 1 || search->err.code != ERR_NONE || search->patience.fired;
    if (!at_once && !search->patience.armed)
        timer_start(search->task.loop, &search->patience, &search->task, SOFT_STOP_MS);
    return at_once;
}

/* What is not being measured is left in the store as it is. */
static void stop_attempts(struct search *search)
{
    search_model_stop(search);
    bool at_once = out_of_patience(search);
    list_each_safe (link, &search->running) {
        struct attempt *attempt = container_of(link, struct attempt, link);
        bool measured = attempt->submitted && attempt->request.stage >= STAGE_CHECK;
        if (!attempt->abandoned && (at_once || !measured))
            attempt_abandon(attempt);
    }
}

static enum task_result step_searching(struct search *search)
{
    reap(search);
    if (search_stopping(search))
        stop_attempts(search);
    else
        propose(search);
    if (search->in_flight > 0 || (search->completions && search_model_rounds(search)))
        return TASK_WAIT;
    timer_stop(&search->patience);
    timer_stop(&search->deadline);
    bool final = search->options.final && !search->options.dry_run && !search_stopping(search);
    task_move(&search->task, final ? VERIFYING : CLOSING);
    return TASK_AGAIN;
}

/* ---- verifying and closing ---- */

static enum task_result step_verifying(struct search *search)
{
    if (search_stopping(search) && search->final.active && out_of_patience(search))
        lane_cancel(search->lane, &search->final);
    if (!search_final_step(search))
        return TASK_WAIT;
    timer_stop(&search->patience);
    task_move(&search->task, CLOSING);
    return TASK_AGAIN;
}

const char *search_stop_reason(const struct search *search)
{
    return search->err.code           ? search->err.message
           : search->stops            ? "interrupted"
           : search->budget_reached   ? "budget"
           : search->provider_stopped ? search->provider_stopped
                                      : "";
}

static enum task_result step_closing(struct search *search)
{
    if (search->write.active)
        return TASK_WAIT;
    if (!search->written_end) {
        struct store_batch *batch = store_batch_new();
        struct run_record *run = &search->record;
        search->written_end = true;
        run->state = search->err.code ? "failed" : search->stops ? "stopped" : "done";
        run->stopped = search_stop_reason(search);
        run->ended_ms = clock_wall_ms();
        search_event(search, batch, LOG_INFO, "run.end", search->id, "%s%s%s", run->state,
                     *run->stopped ? ": " : "", run->stopped);
        search_put_run(search, batch);
        store_write_take(search->writer, &search->write, &search->task, batch);
        if (search->lane)
            lane_close(search->lane);
        return TASK_WAIT;
    }
    if (search->write.err.code) {
        store_batch_free(search->write.batch);
        search->write.batch = NULL;
        if (search->err.code == ERR_NONE)
            search->err = search->write.err;
    }
    task_move(&search->task, DONE);
    return TASK_DONE;
}

static enum task_result search_step(struct task *task)
{
    struct search *search = container_of(task, struct search, task);
    search->phase = states[task->state];
    search->searching = task->state == SEARCHING;
    switch (task->state) {
    case PREPARING:
        return step_preparing(search);
    case SEARCHING:
        return step_searching(search);
    case VERIFYING:
        return step_verifying(search);
    default:
        return step_closing(search);
    }
}

const struct task_type search_type = {"search", states, moves, STATES, search_step, NULL};

void search_pause(struct search *search, bool paused)
{
    if (search->completions)
        completions_hold(search->completions, paused);
}
