/* agents/search/outside: a run as the display and the exit code see it. */
#include "agents/search/private.h"

#include "base/clock.h"

void search_progress(const struct search *search, struct search_progress *progress)
{
    const struct run_record *run = &search->record;
    double elapsed = run->ended_ms ? run->elapsed_ms : search_elapsed_ms(search);
    *progress = (struct search_progress){
        .run = search->id,
        .phase = search->phase,
        .round = run->round,
        .rounds = search->options.rounds,
        .proposed = search->numbers,
        .in_flight = (int64_t)search->in_flight,
        .evaluated = run->evaluated,
        .kept = run->kept,
        .rejected = run->rejected,
        .failed = run->failed,
        .best = search->best ? search->best->record.id : "",
        .best_speedup_low = run->speedup_low,
        .best_speedup = run->speedup,
        .best_speedup_high = run->speedup_high,
        .best_time_ns = run->time_ns,
        .baseline = run->baseline,
        .unfit = run->unfit,
        .unconfined = run->unconfined,
        .verified = run->verified,
        .win = run->win,
        .elapsed_ms = elapsed,
        .left_ms = search_left_ms(search),
        .paused = search_paused(search),
        .lane_busy = run->ended_ms ? run->lane_busy : search_lanes_busy(search),
        .lane_waits = run->ended_ms ? run->lane_waits : search_lanes_wait(search)};
    if (search->budget)
        progress->spent = budget_totals(search->budget);
    if (search->completions) {
        struct completions_totals totals = completions_totals(search->completions);
        progress->requests_in_flight = totals.waiting;
        progress->awaited = totals.awaited;
    }
    const char *reason = search_stop_reason(search);
    progress->stopped = *reason ? reason : NULL;
}

const struct evaluation *search_champion(const struct search *search)
{
    return search->has_champion ? &search->champion : NULL;
}

bool search_done(const struct search *search)
{
    return search->task.finished;
}

const struct err *search_error(const struct search *search)
{
    return &search->err;
}
