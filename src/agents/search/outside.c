/* agents/search/outside: a run as others see it: its record, the display, the exit code. */
#include "agents/search/private.h"

#include "base/clock.h"
#include "base/mem.h"

void search_put_run(struct search *search, struct store_batch *batch)
{
    struct run_record *record = &search->record;
    record->elapsed_ms = search_elapsed_ms(search);
    record->saved_ms = clock_wall_ms();
    record->left_ms = search_left_ms(search);
    record->lane_busy = search_lanes_busy(search);
    record->lane_waits = search_lanes_wait(search);
    record->best = search->best ? search->best->record.id : "";
    if (search->keeps_earlier)
        record->best = search->earlier.best;
    record->in_flight = (int64_t)search->in_flight;
    record->paused = search_paused(search) ? search_paused(search) : "";
    if (search->completions) {
        struct completions_totals totals = completions_totals(search->completions);
        record->awaited = totals.awaited;
        record->requests = totals.requests;
    }
    if (search->budget) {
        struct budget_totals spent = budget_totals(search->budget);
        record->tokens = spent.tokens;
        record->micro_dollars = spent.micro_dollars;
    }
    char *pauses = search_pauses_text(search);
    char *asked = search_asked_text(search);
    record->pauses = pauses;
    record->asked = asked;
    BUF_LOCAL(agents, 2048);
    agents_say(search, &agents);
    record->agents = buf_text(&agents);
    BUF_LOCAL(batches, 2048);
    if (search->completions)
        completions_say_batches(search->completions, &batches);
    record->batches = buf_text(&batches);
    BUF_LOCAL(text, 4 << 20);
    run_record_encode(record, &text);
    store_batch_put(batch, STORE_RUNS, search->id, buf_text(&text), text.length);
    mem_free(pauses);
    mem_free(asked);
    record->pauses = record->asked = "{}";
    record->agents = record->batches = "";
}

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
        .dropped = run->dropped,
        .outside = run->outside,
        .best = search->best ? search->best->record.id : "",
        .best_speedup_low = run->speedup_low,
        .best_speedup = run->speedup,
        .best_speedup_high = run->speedup_high,
        .best_time_ns = run->time_ns,
        .baseline = run_record_baseline(run),
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

bool search_done(const struct search *search)
{
    return search->task.finished;
}

const struct err *search_error(const struct search *search)
{
    return &search->err;
}
