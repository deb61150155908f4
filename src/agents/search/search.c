/* agents/search: a run, from its first line in the store to its last.
 *
 *   preparing (worker, problem, ceilings) -> searching (attempts come and go)
 *     -> verifying (the champion once more) -> closing (last record, lane) -> done
 *
 * A stop or an error goes to closing from wherever the run is, once what is under way has ended.
 */
#include "agents/search/private.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

enum { PREPARING, SEARCHING, VERIFYING, CLOSING, DONE, STATES };
static const char *const states[STATES] = {"preparing", "searching", "verifying the champion",
                                           "closing", "done"};
static const uint32_t moves[STATES] = {
    1u << SEARCHING | 1u << CLOSING, 1u << VERIFYING | 1u << CLOSING, 1u << CLOSING, 1u << DONE, 0};

enum { SOFT_STOP_MS = 6000 };

/* ---- records ---- */

/* ---- preparing ---- */

/* A disk that is full must not keep a run from ending: what is there is kept, the rest is lost. */
static void give_up_waiting(struct search *search)
{
    if (store_writer_waits(search->writer))
        store_writer_give_up(search->writer);
    if (search->completions)
        completions_hurry(search->completions);
}

static void put_start(struct search *search)
{
    struct store_batch *batch = store_batch_new();
    search_event(search, batch, LOG_INFO, search->options.resume ? "run.resume" : "run.start",
                 search->id, "%s on %s, provider %s", search->record.problem,
                 search->options.backend, search->record.provider);
    search_put_run(search, batch);
    search->written_start = true;
    store_write_take(search->writer, &search->write, &search->task, batch);
}

/* The worker is there: what it said goes to disk before the first candidate does. */
static int prepared(struct search *search)
{
    struct err *err = &search->err;
    if (search_opened(search, err) || (search_has_model(search) && search_model_open(search, err)))
        return -1;
    search_library_opened(search);
    struct store_batch *batch = store_batch_new();
    search_put_ceilings(search, batch);
    search_lessons_open(search, batch);
    search_put_opening(search, batch);
    search_put_run(search, batch);
    store_write_take(search->writer, &search->write, &search->task, batch);
    search->prepared = true;
    *search->builtin = (struct chain){
        .first = 1,
        .ideas_first = 1,
        .limit = search->options.dry_run ? 1 : search_round_size(search) * search->options.rounds,
        .window = search_lanes_depth(search)};
    if (search_has_model(search) && search->options.kernel)
        search->builtin->limit = search_values_first(search);
    return 0;
}

/* A definition that takes minutes, or another twagent in the way. */
static void prepared_late(struct search *search)
{
    search_lanes_late(search);
    search_cap_opening(search);
}

static void tell_preparing(const struct search *search)
{
    double gone = search_elapsed_ms(search) - search->earlier_ms;
    double all = (double)search->options.budget_ms;
    if (all > 0 && gone > all / 4)
        log_event(LOG_WARN, "run.time", search->id,
                  "opening the problem took %.1f s of a budget of %.1f s", gone / 1e3, all / 1e3);
}

static enum task_result step_preparing(struct search *search)
{
    if (!search->written_start) {
        put_start(search);
        search_tell_opening(search);
        search_library_open(search);
        if (search_lanes_open(search) == 0)
            return TASK_WAIT;
    }
    if (search_stopping(search) ||
        search_deadline_passed(search)) /* there is nothing to keep yet */
        give_up_waiting(search);
    search_watch_room(search);
    if (search_deadline_passed(search) && !search_lanes_were_late(search))
        prepared_late(search);
    if (!search_lanes_ready(search) || search->write.active || search_library_busy(search))
        return TASK_WAIT;
    if (search->write.err.code && search->err.code == ERR_NONE)
        search->err = search->write.err;
    tell_preparing(search);
    if (!search_stopping(search) && !search_lanes_were_late(search) && prepared(search) == 0)
        task_move(&search->task, SEARCHING);
    else
        task_move(&search->task, CLOSING);
    return TASK_AGAIN;
}

/* ---- searching ---- */

/* Without a model the chain is the run; a round is as many candidates as a model would write. */
static bool step_chain(struct search *search)
{
    bool more = chain_step(search, search->builtin);
    int64_t size = search_round_size(search), round = search->builtin->proposed / size + 1;
    if (search->builtin->proposed > 0 && round > search->options.rounds)
        round = search->options.rounds;
    while (search->builtin->taken / size > search->builtin_rounds) {
        search_prune(search);
        search_round_taken(search, ++search->builtin_rounds);
    }
    if (round != search->record.round && search->builtin->proposed > 0) {
        search->record.round = round;
        log_event(LOG_INFO, "round.start", search->id, "round %lld of %lld", (long long)round,
                  (long long)search->options.rounds);
    }
    return more;
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
static void stop_attempts(struct search *search, bool at_once)
{
    search_rounds_stop(search);
    search_values_stop(search);
    list_each_safe (link, &search->running) {
        struct attempt *attempt = container_of(link, struct attempt, link);
        bool measured = attempt->submitted && attempt->request.stage >= STAGE_CHECK;
        if (!attempt->abandoned && (at_once || !measured))
            attempt_abandon(attempt);
    }
}

/* The time for searching is up. What is not being measured yet, or waits for another twagent's
 * turn, is left; what is being measured only where that would cost the champion's last measurement.
 */
static void stop_late(struct search *search)
{
    if (!search_deadline_passed(search))
        return;
    bool at_once = search_time_is_up(search) || (search->best && !search_affords_in_flight(search));
    if (at_once && search->completions)
        completions_hurry(search->completions);
    list_each_safe (link, &search->running) {
        struct attempt *attempt = container_of(link, struct attempt, link);
        bool measured = attempt->submitted && attempt->request.stage >= STAGE_CHECK;
        if (!attempt->abandoned && (at_once || !measured || attempt->request.waits))
            attempt_abandon(attempt);
    }
}

static void watch(struct search *search)
{
    if (!search_watch(search))
        return;
    struct store_batch *batch = store_batch_new();
    search_put_run(search, batch);
    store_write_take(search->writer, &search->put, &search->task, batch);
}

static enum task_result step_searching(struct search *search)
{
    search_deadline_set(search);
    if (search_stopping(search)) {
        bool at_once = out_of_patience(search);
        stop_attempts(search, at_once);
        if (at_once)
            give_up_waiting(search);
    } else if (!search_may_propose(search) && !search_reached(search)) {
        search_values_stop(search);
        search_rounds_stop(search); /* a budget, or a mailbox: nobody is waited for any more */
        stop_late(search);
    }
    watch(search);
    bool more = search_writes(search) ? search_rounds_step(search) : step_chain(search);
    if (!more && search_has_model(search) && search->options.kernel)
        more = search_values_step(search);
    if (more || search->in_flight > 0)
        return TASK_WAIT;
    timer_stop(&search->patience);
    search_deadline_stop(search);
    bool final = search->options.final && !search->options.dry_run && !search_stopping(search) &&
                 !search_awaits(search);
    task_move(&search->task, final ? VERIFYING : CLOSING);
    return TASK_AGAIN;
}

/* ---- verifying and closing ---- */

static enum task_result step_verifying(struct search *search)
{
    watch(search);
    if (search_stopping(search) && out_of_patience(search)) {
        give_up_waiting(search);
        search_final_cancel(search);
    }
    search_final_watch(search);
    if (!search_final_step(search))
        return TASK_WAIT;
    timer_stop(&search->patience);
    task_move(&search->task, CLOSING);
    return TASK_AGAIN;
}

/* A run that goes on and ends before its champion is measured again still has its earlier one. */
static void keep_earlier(struct search *search)
{
    struct run_record *run = &search->record;
    const struct run_record *earlier = &search->earlier;
    search->keeps_earlier = !search_champion(search) && earlier->best && *earlier->best;
    if (!search->keeps_earlier)
        return;
    run->verified = true;
    run->win = earlier->win;
    run->finding = earlier->finding;
    run->noise = earlier->noise;
    run->time_ns = earlier->time_ns;
    run->speedup = earlier->speedup;
    run->speedup_low = earlier->speedup_low;
    run->speedup_high = earlier->speedup_high;
}

/* A problem that could not be opened has left nothing to list or to go on with. */
static void forget_run(struct search *search, struct store_batch *batch)
{
    char key[64];
    store_batch_remove(batch, STORE_RUNS, search->id);
    for (int64_t i = 1; i <= search->event_number; i++) {
        snprintf(key, sizeof key, "%s-%lld", search->id, (long long)i);
        store_batch_remove(batch, STORE_EVENTS, key);
    }
}

static void put_end(struct search *search)
{
    struct store_batch *batch = store_batch_new();
    struct run_record *run = &search->record;
    search->written_end = true;
    keep_earlier(search);
    search_drop_ceilings(search, batch);
    run->state = search->err.code                         ? "failed"
                 : search->stops || search_awaits(search) ? "stopped"
                 : search_provider_stopped(search)        ? "paused"
                                                          : "done";
    run->stopped = search_stop_reason(search);
    run->ended_ms = clock_wall_ms();
    run->pid = 0;
    if (search_lanes_were_late(search)) /* as long at least */
        search_put_opening(search, batch);
    search_event(search, batch, LOG_INFO, "run.end", search->id, "%s%s%s", run->state,
                 *run->stopped ? ": " : "", run->stopped);
    search_put_run(search, batch);
    if (search->err.code && !search->prepared && !search->options.resume)
        forget_run(search, batch);
    store_write_take(search->writer, &search->write, &search->task, batch);
}

static enum task_result step_closing(struct search *search)
{
    search_deadline_stop(search);
    search_watch_room(search);
    if (search_stopping(search))
        give_up_waiting(search);
    if (search->write.active || search->put.active || search->twins_write.active ||
        search_watch_busy(search) || search_library_busy(search))
        return TASK_WAIT;
    if (!search->written_end) {
        search_watch_end(search);
        put_end(search);
        search_lanes_close(search);
        search_watch_room(search);
        return TASK_WAIT;
    }
    search_watch_end(search);
    struct store_write *writes[] = {&search->write, &search->put, &search->twins_write};
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        if (!writes[i]->err.code)
            continue;
        store_batch_free(writes[i]->batch);
        writes[i]->batch = NULL;
        if (search->err.code == ERR_NONE)
            search->err = writes[i]->err;
    }
    task_move(&search->task, DONE);
    return TASK_DONE;
}

static enum task_result search_step(struct task *task)
{
    struct search *search = container_of(task, struct search, task);
    search->phase = states[task->state];
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
