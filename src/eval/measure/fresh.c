/* eval/measure/fresh: a claim is taken once more where nothing that was computed before can be.
 *
 * A runner that is used on meets the sets of the pool again, and what its device keeps for it where
 * nobody can clear it (the driver's own memory) could hold a result. So whoever wins, or is below
 * the operations floor, is timed against the same baseline in a process that no candidate was in
 * before, one launch for each set that it has never met. Where that is slower than the first
 * interval allows, it is what counts, and so it goes on for the rest of the evaluation.
 */
#include "eval/measure/timing.h"

enum { LAUNCHES_MOST = 12, MULTIPLE = 4 }; /* of what blocks and chunks of samples are made of */
static const double slack = 1.05;          /* of few samples' median */

static bool claims(const struct bench *bench)
{
    const struct evaluation *evaluation = bench->evaluation;
    const struct measure_request *request = bench->request;
    double time_ns = evaluation->time_ns.median;
    bool best = !(request->best_ns > 0.0) || time_ns < request->best_ns;
    return (evaluation->finding == FINDING_FASTER && best) ||
           time_ns < bench->session->flops_floor_ns;
}

int measure_fresh(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    struct timing timing = {.bench = bench, .baseline = &session->baselines[session->baseline]};
    size_t pairs = session->pool_count / MULTIPLE * MULTIPLE;
    pairs = pairs < LAUNCHES_MOST ? pairs : LAUNCHES_MOST;
    if (bench->subject == NULL || bench->subject->renew == NULL || !claims(bench))
        return 0; /* each of its generations has a process of its own */
    timing_limits(bench, &timing.limits);
    timing.limits.pairs_least = timing.limits.pairs_most = pairs;
    timing.limits.best_ns = 0.0;
    bench_close(bench);
    bench->fresh = true;
    if (timing_run(&timing, err) != 0)
        return -1;
    if (bench->ended)
        return 0;
    bench->fresh = timing.ratio.median * slack < bench->evaluation->speedup.low;
    if (!bench->fresh)
        return 0;
    bench_note(bench,
               "%.3gx where inputs had come before, %.3gx in a fresh process that had met none of "
               "them: the latter counts",
               bench->evaluation->speedup.median, timing.ratio.median);
    timing_record(&timing);
    return 0;
}
