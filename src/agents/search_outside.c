/* agents/search_outside: a run as the display and the exit code see it. */
#include "agents/search_private.h"

#include "base/clock.h"

/* By the budget where there is one, else by the rate so far. */
static double left_ms(const struct search *search, double elapsed)
{
    int64_t most = search_attempts_most(search);
    double by_rate =
        search->record.evaluated > 0 && search->searching
            ? elapsed / (double)search->record.evaluated * (double)(most - search->record.evaluated)
            : -1;
    double by_budget =
        search->options.budget_ms > 0 ? (double)search->options.budget_ms - elapsed : -1;
    if (by_budget < 0 || (by_rate >= 0 && by_rate < by_budget))
        return by_rate;
    return by_budget > 0 ? by_budget : 0;
}

void search_progress(const struct search *search, struct search_progress *progress)
{
    const struct run_record *run = &search->record;
    double elapsed = run->ended_ms ? run->elapsed_ms : search_elapsed_ms(search);
    *progress = (struct search_progress){.run = search->id,
                                         .phase = search->phase,
                                         .round = run->round,
                                         .rounds = search->options.rounds,
                                         .proposed = search->proposed,
                                         .in_flight = (int64_t)search->in_flight,
                                         .evaluated = run->evaluated,
                                         .kept = run->kept,
                                         .rejected = run->rejected,
                                         .failed = run->failed,
                                         .best = search->best ? search->best->record.id : "",
                                         .best_speedup_low = run->speedup_low,
                                         .best_speedup = run->speedup,
                                         .best_time_ns = run->time_ns,
                                         .baseline = run->baseline,
                                         .verified = run->verified,
                                         .win = run->win,
                                         .elapsed_ms = elapsed,
                                         .left_ms = left_ms(search, elapsed),
                                         .lane_busy = run->ended_ms  ? run->lane_busy
                                                      : search->lane ? lane_busy_ratio(search->lane)
                                                                     : 0};
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
