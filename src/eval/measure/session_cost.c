/* eval/measure/session_cost: what a final measurement will take on this machine, by what the
 * session has measured itself; and what one that has to be done by some time leaves out. */
#include "base/clock.h"
#include "eval/measure/packaged.h"
#include "eval/measure/session_private.h"

#include <math.h>

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
    bool unbuilt = baseline->file != NULL && baseline->artifact == NULL;
    return timing_ms(session, baseline_ms(session, baseline)) +
           (unbuilt ? session->costs.compile_ms : 0.0);
}

/* The fewest samples that it takes, however long each takes by the wall clock: a call of PyTorch's
 * with its inputs takes a hundred times as long as its device computes. Then the candidate against
 * itself, which is about half of that. */
static double least_ms(const struct session *session)
{
    enum { PAIRS = 20, LARGE_PAIRS = 10 }; /* timing_limits() */
    double pairs = session->lane->gpu && session_is_large(session) ? LARGE_PAIRS : PAIRS;
    return session->costs.pair_ms * (pairs + pairs / 2);
}

double session_final_ms(const struct session *session)
{
    const struct costs *costs = &session->costs;
    const struct baseline *own = &session->baselines[session->baseline];
    /* Sanitizers make a compile twice as long, where they do not work beside the checks. Steady: 64
     * calls, each checked, seen on a GPU. */
    enum { SANITIZE_MS = 4000, BESIDE_MS = 2000, EXTRA_BUILDS = 3, STEADY_MS = 2000 };
    double sanitize_ms = session->backend->hold_sanitizer != NULL ? BESIDE_MS : SANITIZE_MS;
    if (!costs->known)
        return 0.0;
    return costs->sets_ms + costs->calls_ms + EXTRA_BUILDS * costs->compile_ms +
           fmax(cost_of_baseline(session, own) + timing_ms(session, 0.0), least_ms(session)) +
           (session->lane->gpu ? STEADY_MS : 0) + (packaged_applies(session) ? PACKAGED_MS : 0) +
           (costs->sanitize_ms > 0.0 ? costs->sanitize_ms : sanitize_ms);
}

double bench_left_ms(const struct bench *bench)
{
    if (bench->ends_ns == 0)
        return INFINITY;
    double left_ms = ((double)bench->ends_ns - (double)clock_now_ns()) / 1e6;
    if (bench->stage != STAGE_PROFILE) /* the sanitizer is still to come */
        left_ms -= bench->session->costs.sanitize_ms;
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
