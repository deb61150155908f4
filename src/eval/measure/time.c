/* eval/measure/time: taking samples. Nothing is timed that is not checked, and no generation of a
 * runner meets a set twice; docs/timing-and-statistics.md explains the order. */
#include "eval/measure/guard.h"
#include "eval/measure/timing.h"
#include "eval/sets/view.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

enum { SLOW_FACTOR = 5, DROP_AFTER = 3, DROP_DISTURBED = 10, A_PATIENCE = 4, A_ENOUGH = 3 };
static const double far_behind = 1.5;
#define UNNOTICED_NS 1e9 /* a call that takes longer does not notice cold pages */

/* A device's call is a single launch, and for what lies around it takes many times as long: where
 * that is tensors of hundreds of MiB to bring there, back and to compare, fewer do. */
void timing_limits(const struct bench *bench, struct limits *limits)
{
    const bool device = bench->session->lane->gpu;
    const bool large = device && session_is_large(bench->session);
    uint64_t budget_ns = bench->session->options.time_budget_ms * UINT64_C(1000000);
    size_t most = device ? PAIRS_MOST : PAIRS_MOST / 4;
    switch (bench->request->effort) {
    case EFFORT_SEARCH:
        *limits = (struct limits){.pairs_least = 10,
                                  .pairs_most = device ? 96 : 24,
                                  .rounds_least = 6,
                                  .budget_ns = budget_ns,
                                  .narrow = 0.01,
                                  .best_ns = bench->request->best_ns};
        break;
    case EFFORT_FULL:
        *limits = (struct limits){.pairs_least = 10,
                                  .pairs_most = most,
                                  .rounds_least = 8,
                                  .budget_ns = device ? 3 * budget_ns : budget_ns,
                                  .narrow = 0.01};
        break;
    case EFFORT_FINAL:
        *limits = (struct limits){.pairs_least = large ? 10 : 20,
                                  .pairs_most = most,
                                  .rounds_least = 12,
                                  .budget_ns = (device ? 6 : 2) * budget_ns,
                                  .narrow = 0.005};
        break;
    }
}

/* --- one call of each --- */

/* A call takes longer after a pass over tensors than after another call, as little as it is: where
 * the candidate's outputs are verified, a baseline's are passed over, too. */
static void pass_over(const struct bench *bench, const struct set *set,
                      const struct arrangement *arrangement)
{
    for (size_t i = 0; i < arrangement->layout.output_count; i++) {
        const struct placed *placed = &arrangement->layout.outputs[i];
        struct mismatch ignored;
        set_judge(bench->session, set, i, placed, bench->outputs + placed->offset, &ignored);
    }
}

static int call_a(struct timing *timing, const struct set *set,
                  const struct arrangement *arrangement, struct outcome *outcome, struct err *err)
{
    struct bench *bench = timing->bench;
    if (timing->rival != NULL) {
        if (rival_call(bench, set, outcome, err) != 0)
            return -1;
        timing->timed_ns += outcome->elapsed_ns;
        return 0;
    }
    struct subject *subject = timing->baseline != NULL ? timing->baseline->subject : bench->twin;
    int status = call_run(bench, subject, arrangement, true, outcome, err);
    if (status != 0) {
        if (timing->baseline == NULL)
            return bench_failed(bench, err);
        baseline_close(bench->session, timing->baseline);
        return err_wrap(err, "baseline %s", timing->baseline->name);
    }
    timing->timed_ns += outcome->elapsed_ns;
    if (timing->baseline == NULL)
        call_verify(bench, set, arrangement);
    else if (set != NULL && !subject->own_results)
        pass_over(bench, set, arrangement);
    return 0;
}

static int call_b(struct timing *timing, const struct set *set,
                  const struct arrangement *arrangement, struct outcome *outcome, struct err *err)
{
    struct bench *bench = timing->bench;
    int status = call_run(bench, bench->subject, arrangement, true, outcome, err);
    if (status != 0)
        return guard_hit(bench, set, arrangement) ? 0 : bench_failed(bench, err);
    bench_saw(bench, set);
    bench_watch(bench, &bench->subject->state);
    timing->timed_ns += outcome->elapsed_ns;
    call_verify(bench, set, arrangement);
    return 0;
}

/* Of A, where it is a kernel, too. */
static int other_generation(struct timing *timing, struct err *err)
{
    if (timing->rival != NULL)
        return rival_ensure(timing->bench, err);
    return timing->baseline == NULL ? bench_ensure_twin(timing->bench, err) : 0;
}

/* The next set that this generation has not met, in place; NULL where there is a verdict already.
 */
static int next_set(struct timing *timing, struct set **set, struct arrangement *arrangement,
                    struct err *err)
{
    struct bench *bench = timing->bench;
    const struct measure_request *request = bench->request;
    *set = NULL;
    if (request->breathe != NULL && bench_left_ms(bench) > 0.0) /* late: it comes to its end */
        timing->started_ns += request->breathe(request->breather);
    for (size_t tries = 0; tries < 4 * POOL_MOST; tries++) {
        if (atomic_load(&bench->session->cancelled))
            return err_set(err, ERR_CANCELLED, "cancelled");
        if (bench_ensure_generation(bench, 1, err) != 0)
            return -1;
        if (!bench->ended && other_generation(timing, err) != 0)
            return -1;
        if (bench->ended)
            return 0;
        *set = bench_fresh_set(bench);
        if (*set == NULL || set_expect(bench->session, *set, err) != 0)
            return *set == NULL ? err_set(err, ERR_LIMIT, "the pool of inputs is too small") : -1;
        if (!(*set)->unfit) {
            if (bench_arrange(bench, (*set)->shape, arrangement, err) != 0)
                return bench_failed(bench, err);
            call_place(bench, *set, arrangement);
            return 0;
        }
        bench_saw(bench, *set);
    }
    return err_set(err, ERR_USAGE,
                   bench->session->beside != 0
                       ? "the definition itself does not meet the spec's tolerance on random inputs"
                       : "the reference gives no finite results for random inputs");
}

static int warm_baseline(struct timing *timing, double *a_ns, struct err *err)
{
    struct bench *bench = timing->bench;
    struct session *session = bench->session;
    struct baseline *baseline = timing->baseline;
    struct arrangement arrangement = {0};
    struct outcome outcome;
    if (baseline_ready(session, baseline, err) != 0)
        return -1;
    *a_ns = baseline_median(baseline);
    if (isnan(*a_ns) && baseline->verified_ns > UNNOTICED_NS) {
        *a_ns = baseline->verified_ns;
        baseline->warm = true;
    }
    size_t slots = bench->one_slot ? 1 : session->slots;
    for (size_t slot = 0; slot < slots && !baseline->warm; slot++) {
        struct set *set = &session->pool[slot];
        bench->slot_forced = true;
        bench->slot_wanted = slot;
        int status = set_expect(session, set, err) != 0 ||
                             bench_arrange(bench, set->shape, &arrangement, err) != 0
                         ? -1
                         : 0;
        bench->slot_forced = false;
        if (status != 0)
            return -1;
        call_place(bench, set, &arrangement);
        if (call_a(timing, set, &arrangement, &outcome, err) != 0)
            return -1;
        double ns = (double)outcome.elapsed_ns;
        *a_ns = *a_ns <= ns ? *a_ns : ns;
        if (ns > UNNOTICED_NS)
            break;
    }
    baseline->warm = true;
    timing->timed_ns = 0;
    return 0;
}

/* --- paired --- */

static double fastest_b(const struct timing *timing)
{
    double best = INFINITY;
    for (size_t i = 0; i < timing->count; i++)
        best = fmin(best, timing->samples[i].b_ns);
    return best;
}

/* The best known time may be of a quieter moment: where other programs disturb the samples it takes
 * more of them. */
bool timing_far_behind(struct timing *timing)
{
    bool calm = timing->count >= timing->disturbed + DROP_AFTER;
    if (timing->limits.best_ns <= 0.0 || (!calm && timing->count < DROP_DISTURBED))
        return false;
    double call_ns = empty_so_far(timing); /* taken off the best one, and in these */
    timing->far_behind = fastest_b(timing) > far_behind * (timing->limits.best_ns + call_ns);
    return timing->far_behind;
}

static void add_sample(struct timing *timing, const struct set *set, const struct outcome *a,
                       const struct outcome *b, double call_ns)
{
    if (timing->settles)
        return;
    timing->samples[timing->count++] = (struct sample){.a_ns = (double)a->elapsed_ns,
                                                       .b_ns = (double)b->elapsed_ns,
                                                       .a_delay_ns = (double)a->delay_ns,
                                                       .b_delay_ns = (double)b->delay_ns,
                                                       .chunk = timing->a_count,
                                                       .round = timing->rounds,
                                                       .call_ns = call_ns,
                                                       .disturbed = a->disturbed || b->disturbed,
                                                       .distribution = set->distribution};
    timing->disturbed += a->disturbed || b->disturbed;
    timing->in_round++;
}

static int take_pair(struct timing *timing, bool a_first, struct err *err)
{
    struct bench *bench = timing->bench;
    struct arrangement arrangement = {0};
    struct set *set;
    struct outcome a = {0}, b = {0};
    double call_ns;
    if (next_set(timing, &set, &arrangement, err) != 0)
        return -1;
    if (set == NULL) /* there is a verdict already */
        return 0;
    for (int turn = 0; turn < 2 && !bench->ended; turn++) {
        bool is_a = (turn == 0) == a_first;
        if (is_a && call_a(timing, set, &arrangement, &a, err) != 0)
            return -1;
        if (!is_a && call_b(timing, set, &arrangement, &b, err) != 0)
            return -1;
    }
    if (bench->ended)
        return 0;
    if (empty_call(timing, &arrangement, &call_ns, err) != 0)
        return -1;
    add_sample(timing, set, &a, &b, call_ns);
    return 0;
}

/* Both processes are there before one of them is called: what is warm while the other one starts is
 * cold again afterwards. Who starts and who is called first changes from round to round. */
static int next_round(struct timing *timing, struct err *err)
{
    struct bench *bench = timing->bench;
    uint64_t timed_ns = timing->timed_ns;
    if (!round_is_over(timing))
        return 0;
    round_begin(timing);
    bool first = timing->swaps ? timing->rounds > 1 : timing->rounds % 2 == 0;
    int status = first ? bench_open(bench, err) : 0; /* swapped: in what was the baseline's */
    if (status == 0 && !bench->ended && timing->baseline != NULL)
        status = baseline_ready(bench->session, timing->baseline, err);
    if (status == 0 && !bench->ended)
        status = empty_open(timing, err);
    timing->settles = true;
    for (size_t i = 0; i < timing->settling && status == 0 && !bench->ended; i++) {
        bench->slot_forced = i < bench->session->slots;
        bench->slot_wanted = bench->slot_forced ? i : 0;
        status = take_pair(timing, (timing->rounds + i) % 2 == 0, err);
        bench->slot_forced = false;
    }
    timing->settles = false;
    timing->timed_ns = timed_ns;
    return status;
}

static int run_paired(struct timing *timing, struct err *err)
{
    struct bench *bench = timing->bench;
    while (!bench->ended && timing->count < timing->limits.pairs_most) {
        if (next_round(timing, err) != 0)
            return -1;
        for (size_t half = 0; half < BLOCK_PAIRS && !bench->ended; half++) {
            if (take_pair(timing, (timing->rounds + half) % 2 == 0, err) != 0)
                return -1;
            if (timing_far_behind(timing))
                return 0;
        }
        if (!bench->ended && timing_enough(timing))
            return 0;
    }
    return 0;
}

/* --- shared --- */

static int take_b(struct timing *timing, struct arrangement *arrangement, struct err *err)
{
    struct bench *bench = timing->bench;
    struct set *set;
    struct outcome outcome, none = {0};
    double call_ns;
    if (next_set(timing, &set, arrangement, err) != 0)
        return -1;
    if (bench->ended || set == NULL)
        return 0;
    if (call_b(timing, set, arrangement, &outcome, err) != 0)
        return -1;
    if (bench->ended)
        return 0;
    if (empty_call(timing, arrangement, &call_ns, err) != 0)
        return -1;
    add_sample(timing, set, &none, &outcome, call_ns);
    return 0;
}

/* How many A samples are worth their time: half of the budget, at least two; none where one alone
 * would be several budgets and the session knows already how long it takes. */
static size_t shares(const struct timing *timing, double a_ns)
{
    double budget = (double)timing->limits.budget_ns;
    if (a_ns > A_PATIENCE * budget)
        return timing->limits.best_ns > 0.0 && timing->baseline != NULL &&
                       timing->baseline->history_count >= 3
                   ? 0
                   : 1;
    double wanted = budget / 2.0 / a_ns;
    return wanted < 2.0 ? 2 : wanted > SHARED_MOST ? SHARED_MOST : (size_t)wanted;
}

static int run_shared(struct timing *timing, double a_ns, struct err *err)
{
    struct bench *bench = timing->bench;
    struct arrangement arrangement = {0};
    size_t most = shares(timing, a_ns), spare = most;
    while (!bench->ended && timing->count < timing->limits.pairs_most) {
        if (next_round(timing, err) != 0)
            return -1;
        for (size_t i = 0; i < CHUNK && !bench->ended && timing->count < PAIRS_MOST; i++)
            if (take_b(timing, &arrangement, err) != 0)
                return -1;
        if (bench->ended || timing_far_behind(timing))
            return 0;
        size_t at = timing->a_count;
        if (at < most) { /* A takes the last B's inputs */
            struct outcome outcome;
            timing->a_distribution[at] = timing->samples[timing->count - 1].distribution;
            if (call_a(timing, NULL, &arrangement, &outcome, err) != 0)
                return -1;
            if (outcome.disturbed && a_ns < (double)timing->limits.budget_ns && spare-- > 0 &&
                !timing_hurries(timing))
                continue; /* the baseline has no hand in that: it is called again */
            timing->a_ns[at] = (double)outcome.elapsed_ns;
            timing->a_delay_ns[at] = outcome.disturbed ? (double)outcome.delay_ns : 0.0;
            timing->a_count++;
        }
        if ((timing->a_count == most || timing->a_count >= A_ENOUGH) && timing_enough(timing))
            return 0;
    }
    return 0;
}

/* Of a request that has to be done by some time, a third of what is left: the same again, and what
 * comes behind it, have theirs. */
static void set_hurry(struct timing *timing)
{
    double left_ms = bench_left_ms(timing->bench);
    if (timing->by_rounds && timing->bench->request->effort != EFFORT_SEARCH && isfinite(left_ms))
        timing->hurry_ns = timing->started_ns + (uint64_t)(fmax(left_ms, 0.0) * 1e6 / 3.0);
}

int timing_run(struct timing *timing, struct err *err)
{
    struct bench *bench = timing->bench;
    double a_ns = 0.0;
    if (timing->baseline != NULL && warm_baseline(timing, &a_ns, err) != 0)
        return -1;
    timing->started_ns = clock_now_ns();
    timing->shared =
        !timing->paired && bench->estimate_ns > 0.0 && a_ns > SLOW_FACTOR * bench->estimate_ns;
    rounds_plan(timing, a_ns);
    set_hurry(timing);
    int status = timing->shared ? run_shared(timing, a_ns, err) : run_paired(timing, err);
    bench->one_slot = bench->settles = false;
    empty_close(timing);
    if (status == 0 && !bench->ended)
        timing_results(timing);
    return status;
}

/* --- the candidate against its baseline --- */

void timing_record(const struct timing *timing)
{
    struct bench *bench = timing->bench;
    struct evaluation *evaluation = bench->evaluation;
    const struct comparison comparison = timing_comparison(timing);
    evaluation->time_ns = timing->b;
    if (timing->rival != NULL)
        evaluation->baseline = "rival";
    evaluation->baseline_ns = timing->a;
    evaluation->speedup = timing->ratio;
    evaluation->spread = timing->spread;
    evaluation->call_ns = timing->call;
    evaluation->call_taken = timing->call_taken;
    evaluation->timed_samples = (int64_t)timing->used;
    evaluation->dropped_samples = (int64_t)(timing->count - timing->used);
    evaluation->dropped = timing->far_behind;
    bench->against = comparison;
    evaluation->finding = timing->far_behind ? FINDING_NONE : stats_finding(&comparison);
    if (evaluation->finding == FINDING_NOISY)
        evaluation->noise = quiet_words(bench, &comparison);
    if (timing->far_behind)
        evaluation->reason = arena_printf(
            bench->arena,
            "dropped: far behind: %.4g us at best in %zu samples, the best known takes "
            "%.4g us",
            fastest_b(timing) / 1e3, timing->count, timing->limits.best_ns / 1e3);
}

/* A baseline that is suddenly slower than it has been all session makes any candidate look good. */
static bool baseline_drifted(const struct timing *timing)
{
    const struct comparison comparison = timing_comparison(timing);
    struct bench *bench = timing->bench;
    double usual = timing->baseline != NULL ? baseline_median(timing->baseline) : INFINITY;
    bool drifted = !timing->shared && timing_whole_a(timing) > 1.1 * usual &&
                   stats_finding(&comparison) == FINDING_FASTER;
    if (drifted && timing->baseline != NULL)
        bench_note(bench, "baseline %s took %.0f us, %.0f us earlier in the session",
                   timing->baseline->name, timing_whole_a(timing) / 1e3, usual / 1e3);
    return drifted;
}

/* Few samples of a baseline do where it takes many times as long. If it turns out that it does not,
 * one slow moment of it would decide. */
static bool too_close_to_share(struct timing *timing)
{
    timing->paired =
        timing->shared && !timing->far_behind && !(timing->ratio.median > SLOW_FACTOR / 2.0);
    return timing->paired;
}

/* Is there reason to measure once more? Whatever it was, the second measurement counts. */
static bool is_doubtful(struct timing *timing)
{
    const struct comparison comparison = timing_comparison(timing);
    if (timing->far_behind)
        return false;
    return baseline_drifted(timing) || (stats_finding(&comparison) == FINDING_NOISY &&
                                        !comparison.too_short && quiet_wait(timing->bench, timing));
}

int measure_time(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    struct timing timing = {.bench = bench};
    struct baseline *baseline =
        bench->rival == NULL ? &session->baselines[session->baseline] : NULL;
    bool paired = bench->rival != NULL, again = false;
    for (bool more = true; more && !bench->ended;) {
        uint64_t begun_ns = clock_now_ns();
        timing = (struct timing){
            .bench = bench, .baseline = baseline, .rival = bench->rival, .paired = paired};
        timing_limits(bench, &timing.limits);
        if (timing_run(&timing, err) != 0)
            return -1;
        if (bench->ended)
            return 0;
        bool close = too_close_to_share(&timing);
        paired = paired || close;
        more = close || (!again && is_doubtful(&timing));
        if (more && !close) {
            again = true;
            bench_close(bench);
        }
        if (more)
            bench->on_sets.again_ms += (double)(clock_now_ns() - begun_ns) / 1e6;
    }
    if (again)
        bench_note(bench, "measured a second time, which is what counts");
    if (baseline != NULL && (timing.shared ? timing.a_count > 0 : timing.count > 0))
        baseline_remember(baseline, timing_whole_a(&timing));
    timing_record(&timing);
    bench->timed = true;
    return 0;
}
