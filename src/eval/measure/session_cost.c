/* eval/measure/session_cost: what a final measurement will take on this machine, by what the
 * session has measured itself; what one that has to be done by some time leaves out; and what a
 * call of a baseline takes before it is timed. */
#include "base/clock.h"
#include "eval/measure/packaged.h"
#include "eval/measure/timing.h"

#include <math.h>

enum { EXTRA_BUILDS = 3 };

void cost_learn(struct session *session, const struct evaluation *evaluation,
                const struct spent *on_sets)
{
    double samples = (double)(evaluation->timed_samples + evaluation->dropped_samples);
    struct costs *costs = &session->costs;
    if (evaluation->verdict != VERDICT_KERNEL || evaluation->dropped)
        return;
    /* Until the first kernel every set was drawn and computed once, as a final measurement does. */
    if (!costs->known)
        costs->sets_ms = fmax(0.0, costs->spent_ms - costs->once_ms);
    costs->known = true;
    costs->calls_ms = fmax(0.0, evaluation->stage_ms[STAGE_CHECK] - on_sets->check_ms);
    costs->samples = samples;
    if (samples > 0)
        costs->pair_ms = fmax(0.0, evaluation->stage_ms[STAGE_TIME] - on_sets->time_ms) / samples;
    if (!session->lane->gpu) /* else it comes from disk */
        costs->compile_ms = evaluation->stage_ms[STAGE_COMPILE];
    if (evaluation->stage_ms[STAGE_SANITIZE] > 0.0)
        costs->sanitize_ms = evaluation->stage_ms[STAGE_SANITIZE];
    if (evaluation->stage_ms[STAGE_PROFILE] > 0.0)
        costs->profile_ms = evaluation->stage_ms[STAGE_PROFILE];
}

/* Samples against one baseline: the budget that timing_limits() gives a final, and what begins and
 * ends them. A baseline that is slow is called a few times all the same. */
static double timing_ms(const struct session *session, double call_ms)
{
    enum { BUDGETS = 3, OF_DEVICE = 7, CALLS = 3 };
    uint64_t budgets = session->lane->gpu ? OF_DEVICE : BUDGETS;
    return (double)(budgets * session->options.time_budget_ms) + CALLS * call_ms;
}

static double baseline_ms(const struct session *session, const struct baseline *baseline)
{
    double median_ns = baseline_median(baseline);
    if (!isnan(median_ns))
        return median_ns / 1e6;
    return (baseline == &session->baselines[0] ? session->exact_ns : baseline->verified_ns) / 1e6;
}

double cost_of_baseline(const struct session *session, const struct baseline *baseline)
{
    enum { PAIRS = 20 };
    bool unbuilt = baseline->file != NULL && baseline->artifact == NULL;
    double pairs_ms = session->lane->gpu ? 0.0 : PAIRS * session->costs.pair_ms;
    return fmax(timing_ms(session, baseline_ms(session, baseline)), pairs_ms) +
           (unbuilt ? session->costs.compile_ms : 0.0);
}

/* The fewest samples that it takes, however long each takes by the wall clock: a call of PyTorch's
 * with its inputs takes a hundred times as long as its device computes. Then the candidate against
 * itself, which is about half of that. On the CPU it has twice the rounds of a search, but for want
 * of time. */
static double pairs_ms(const struct session *session, bool whole)
{
    enum { PAIRS = 20, LARGE_PAIRS = 10, OF_SEARCH = 24 }; /* timing_limits() */
    double pairs = session->lane->gpu && session_is_large(session) ? LARGE_PAIRS : PAIRS;
    if (!session->lane->gpu && whole)
        pairs = fmax(pairs, 2.0 * fmin(session->costs.samples, OF_SEARCH));
    return session->costs.pair_ms * (pairs + pairs / 2);
}

/* Once more what these samples took on the wall clock, and what comes behind them: of a final that
 * is the candidate against itself, which takes as long, many calls and the sanitizer. */
double cost_behind_timing(const struct bench *bench, const struct timing *timing)
{
    enum { STEADY_MS = 1000 };
    double once_ms = (double)(clock_now_ns() - timing->started_ns) / 1e6;
    return bench->request->effort == EFFORT_FINAL ? 2.0 * once_ms + STEADY_MS : once_ms;
}

double session_final_ms(const struct session *session, double *least_ms)
{
    const struct costs *costs = &session->costs;
    const struct baseline *own = &session->baselines[session->baseline];
    /* Sanitizers make a compile twice as long, where they do not work beside the checks. Steady: 64
     * calls, each checked, seen on a GPU. */
    enum { SANITIZE_MS = 4000, BESIDE_MS = 2000, STEADY_MS = 2000 };
    double sanitize_ms = session->backend->hold_sanitizer != NULL ? BESIDE_MS : SANITIZE_MS;
    *least_ms = 0.0;
    if (!costs->known)
        return 0.0;
    double timing = cost_of_baseline(session, own) + timing_ms(session, 0.0);
    double others_ms = costs->sets_ms + costs->calls_ms + EXTRA_BUILDS * costs->compile_ms +
                       (session->lane->gpu ? STEADY_MS : 0) +
                       (costs->sanitize_ms > 0.0 ? costs->sanitize_ms : sanitize_ms);
    *least_ms = others_ms + fmax(timing, pairs_ms(session, false));
    return others_ms + fmax(timing, pairs_ms(session, true)) +
           (packaged_applies(session) ? PACKAGED_MS : 0);
}

/* The builds and the sanitizer, which come behind the timing. */
static double extras_ms(const struct bench *bench)
{
    const struct session *session = bench->session;
    const struct costs *costs = &session->costs;
    if (session->lane->gpu || bench->request->effort != EFFORT_FINAL)
        return costs->sanitize_ms;
    return (EXTRA_BUILDS - 1) * costs->compile_ms +
           (costs->sanitize_ms > 0.0 ? costs->sanitize_ms : costs->compile_ms);
}

double bench_left_ms(const struct bench *bench)
{
    if (bench->ends_ns == 0)
        return INFINITY;
    double left_ms = ((double)bench->ends_ns - (double)clock_now_ns()) / 1e6;
    if (bench->stage != STAGE_PROFILE) /* these are still to come */
        left_ms -= extras_ms(bench);
    return left_ms;
}

bool bench_affords(struct bench *bench, double ms, const char *what)
{
    if (bench_left_ms(bench) >= ms)
        return true;
    bench_note(bench, "left out for want of time: %s (about %.1f s)", what, ms / 1e3);
    return false;
}

/* Counters are read by one process at a time: beside others it takes longer. */
double cost_of_profile(const struct session *session)
{
    enum { DEVICE_MS = 1500 };
    if (session->costs.profile_ms > 0.0 || !session->lane->gpu)
        return session->costs.profile_ms;
    return DEVICE_MS;
}

/* --- what a call of a baseline takes, before it is timed --- */

int baseline_time(struct session *session, struct baseline *baseline, double *ns, struct err *err)
{
    struct evaluation evaluation = {0};
    struct bench bench = {.session = session,
                          .arena = session->arena,
                          .evaluation = &evaluation,
                          .region = &session->region};
    struct arrangement arrangement;
    struct outcome outcome;
    if (baseline_ready(session, baseline, err) != 0)
        return -1;
    for (size_t i = 0; i < 2; i++) {
        if (set_expect(session, &session->pool[i], err) != 0 ||
            bench_arrange(&bench, session->pool[i].shape, &arrangement, err) != 0)
            return -1;
        call_place(&bench, &session->pool[i], &arrangement);
        if (call_run(&bench, baseline->subject, &arrangement, true, &outcome, err) != 0)
            return -1;
    }
    *ns = (double)outcome.elapsed_ns;
    return 0;
}

void baseline_look(struct session *session)
{
    struct baseline *baseline = &session->baselines[session->baseline];
    struct err ignored; /* who times it is told */
    if (baseline == &session->baselines[0] && session->backend->device &&
        session->problem->reference_kind == REFERENCE_TORCH && !(baseline->verified_ns > 0.0) &&
        isnan(baseline_median(baseline)))
        (void)!baseline_time(session, baseline, &baseline->verified_ns, &ignored);
}
