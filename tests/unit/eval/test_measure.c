/* From samples to a verdict, on samples of known worth; and the floor. */
#include "../normal.h"
#include "eval/measure/timing.h"

#include "fake_device.h"
#include "measured.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static void fill(struct timing *timing, size_t count, double a_ns, double b_ns)
{
    struct random random;
    random_init(&random, 7);
    *timing = (struct timing){.limits = {.pairs_least = 10,
                                         .pairs_most = PAIRS_MOST,
                                         .budget_ns = UINT64_C(1) << 50,
                                         .narrow = 0.01},
                              .started_ns = clock_now_ns()};
    for (size_t i = 0; i < count; i++)
        timing->samples[timing->count++] =
            (struct sample){.a_ns = a_ns * (1.0 + 0.004 * (random_unit(&random) - 0.5)),
                            .b_ns = b_ns * (1.0 + 0.004 * (random_unit(&random) - 0.5))};
}

static enum finding finding(const struct timing *timing)
{
    const struct comparison comparison = timing_comparison(timing);
    return stats_finding(&comparison);
}

static void test_a_win_is_seen(void **state)
{
    struct timing timing;
    (void)state;
    fill(&timing, 20, 1.1e6, 1e6);
    timing_results(&timing);
    assert_int_equal(timing.used, 20);
    assert_true(timing.ratio.low > 1.09 && timing.ratio.high < 1.11);
    assert_true(timing.spread < 0.01);
    assert_int_equal(finding(&timing), FINDING_FASTER);
}

static void test_a_kernel_against_itself_wins_nothing(void **state)
{
    struct timing timing;
    (void)state;
    fill(&timing, 40, 1e6, 1e6);
    timing_results(&timing);
    assert_int_equal(finding(&timing), FINDING_SAME);
}

static void test_disturbed_samples(void **state)
{
    struct timing timing;
    (void)state;
    fill(&timing, 20, 1e6, 1e6);
    for (size_t i = 0; i < 5; i++) { /* a few are left out */
        timing.samples[i].disturbed = true;
        timing.samples[i].b_ns *= 10.0;
    }
    timing.disturbed = 5;
    timing_results(&timing);
    assert_int_equal(timing.used, 15);
    assert_true(timing.b.high < 1.1e6);
    for (size_t i = 5; i < 8; i++) { /* more than a third: then all of them count */
        timing.samples[i].disturbed = true;
        timing.samples[i].b_ns *= 10.0;
    }
    timing.disturbed = 8;
    timing_results(&timing);
    assert_int_equal(timing.used, 20);
}

static void test_who_is_dropped(void **state)
{
    struct timing timing;
    (void)state;
    fill(&timing, 20, 1e6, 2e6);
    timing.limits.best_ns = 1e6;
    timing.count = 2;
    assert_false(timing_far_behind(&timing));
    timing.count = 3;
    assert_true(timing_far_behind(&timing));
    timing.disturbed = 1; /* others' work decides nothing so soon */
    assert_false(timing_far_behind(&timing));
    timing.count = 4;
    assert_true(timing_far_behind(&timing));
    for (timing.count = 4; timing.count < 10; timing.count++) {
        timing.disturbed = timing.count;
        assert_false(timing_far_behind(&timing));
    }
    assert_true(timing_far_behind(&timing));
    timing.samples[9].b_ns = 1.4e6;
    assert_false(timing_far_behind(&timing));
}

static void test_a_drift_is_no_win(void **state)
{
    struct timing timing;
    (void)state;
    fill(&timing, 40, 1e6, 1e6);
    for (size_t i = 0; i < timing.count; i++) { /* the machine gets slower all along */
        timing.samples[i].a_ns *= 1.0 + 0.01 * (double)i;
        timing.samples[i].b_ns *= 1.0 + 0.01 * (double)i;
    }
    timing_results(&timing);
    assert_true(fabs(timing.ratio.median - 1.0) < 0.01);
    assert_int_equal(finding(&timing), FINDING_SAME);
}

/* A baseline that takes a quarter longer for one distribution is as steady as any other; one that
 * does so now and then is not. */
static void test_a_time_may_depend_on_the_inputs(void **state)
{
    struct timing timing;
    (void)state;
    for (int steady = 0; steady < 2; steady++) {
        struct random random;
        fill(&timing, 20, 1.1e6, 1e6);
        random_init(&random, 11);
        for (size_t i = 0; i < timing.count; i++) {
            struct sample *sample = &timing.samples[i];
            enum distribution drawn = (enum distribution)random_below(&random, DRAW_GIVEN);
            sample->a_ns *= drawn == DRAW_HEAVY ? 1.25 : 1.0;
            sample->distribution = steady ? drawn : DRAW_NORMAL;
        }
        timing_results(&timing);
        assert_true(steady ? timing.spread < 0.01 : timing.spread > 0.08);
        assert_int_equal(finding(&timing), steady ? FINDING_FASTER : FINDING_NOISY);
    }
}

/* Two A samples that differ by half: no interval over many B may hide that. */
static void test_few_shared_samples_widen(void **state)
{
    struct baseline baseline = {.name = "slow"};
    struct timing timing;
    (void)state;
    fill(&timing, 20, 0.0, 1e6);
    timing.shared = true;
    timing.baseline = &baseline;
    for (size_t i = 0; i < timing.count; i++)
        timing.samples[i].chunk = i / 10;
    timing.a_count = 2;
    timing.a_ns[0] = 20e6;
    timing.a_ns[1] = 30e6;
    timing_results(&timing);
    assert_true(timing.ratio.low < 20.2 && timing.ratio.high > 29.8);
    assert_true(timing.a.low <= 20e6 && timing.a.high >= 30e6);
    baseline_remember(&baseline, 10e6); /* and what it took lately counts as well */
    timing_results(&timing);
    assert_true(timing.ratio.low < 10.2 && timing.a.low <= 10e6);
    baseline_remember(&baseline, 40e6);
    timing_results(&timing);
    assert_true(timing.ratio.high > 39.8 && timing.a.high >= 40e6);
}

static void test_when_it_is_enough(void **state)
{
    struct timing timing;
    (void)state;
    fill(&timing, 9, 1.1e6, 1e6);
    timing.timed_ns = UINT64_MAX;
    assert_false(timing_enough(&timing)); /* never below the least */
    fill(&timing, 20, 1.1e6, 1e6);
    assert_true(timing_enough(&timing)); /* narrow */
    for (size_t i = 0; i < timing.count; i++)
        timing.samples[i].b_ns *= i % 4 < 2 ? 1.5 : 1.0;
    assert_false(timing_enough(&timing));
    timing.timed_ns = timing.limits.budget_ns;
    assert_true(timing_enough(&timing)); /* no more time */
    fill(&timing, 12, 1.1e6, 1e6);
    for (size_t i = 0; i < 4; i++)
        timing.samples[i].disturbed = true;
    timing.disturbed = 4;
    timing.timed_ns = UINT64_MAX;
    assert_false(timing_enough(&timing)); /* what was left out is replaced */
}

/* --- machines, simulated: what is said of a kernel that is known to be as fast, or not --- */

enum { EVALUATIONS = 400, SIMULATED_PAIRS = 32, OF_ROUND = 4 };

/* What a machine makes of one call: `others` of its time it waits for other programs, which the
 * scheduler's account shows or does not; `state` is what one moment leaves to the next. */
struct machine {
    const char *name;
    void (*call)(struct random *random, double *state, double own_ns, double *ns, double *delay_ns);
    int says_most; /* of 100: how often it must find a kernel that is 1.3 times as fast */
};

static void on_quiet(struct random *random, double *state, double own_ns, double *ns, double *delay)
{
    (void)state;
    *ns = own_ns * exp(0.003 * random_normal(random));
    *delay = 0.0;
}

static void on_virtual(struct random *random, double *state, double own_ns, double *ns,
                       double *delay)
{
    on_quiet(random, state, own_ns * exp(0.02 * random_normal(random)), ns, delay);
    if (random_unit(random) < 0.1)
        *ns *= 1.0 + 2.0 * random_unit(random); /* taken by the hypervisor: nobody says so */
}

/* Its speed changes by half, for some ten calls each time. */
static void on_phases(struct random *random, double *state, double own_ns, double *ns,
                      double *delay)
{
    if (random_unit(random) < 0.1)
        *state = *state > 0.0 ? 0.0 : 0.5;
    on_quiet(random, state, own_ns * (1.0 + *state), ns, delay);
}

static void on_drift(struct random *random, double *state, double own_ns, double *ns, double *delay)
{
    *state += 0.01;
    on_quiet(random, state, own_ns * (1.0 + *state), ns, delay);
}

/* Time slices go to others now and then. */
static void on_shared(struct random *random, double *state, double own_ns, double *ns,
                      double *delay)
{
    on_quiet(random, state, own_ns, ns, delay);
    *delay = random_unit(random) < 0.15 ? 4e6 * (1.0 + 3.0 * random_unit(random)) : 0.0;
    *ns += *delay;
}

/* Several programs on each core: every call waits longer than it runs. */
static void on_busy(struct random *random, double *state, double own_ns, double *ns, double *delay)
{
    on_quiet(random, state, own_ns, ns, delay);
    *delay = *ns * 5.0 * random_unit(random);
    *ns += *delay;
}

static void on_busy_unseen(struct random *random, double *state, double own_ns, double *ns,
                           double *delay)
{
    on_busy(random, state, own_ns, ns, delay);
    *delay = 0.0;
}

static const struct machine machines[] = {
    {"quiet", on_quiet, 100},
    {"virtual", on_virtual, 80},
    {"phases", on_phases, 0},
    {"drifting", on_drift, 95},
    {"shared now and then", on_shared, 80},
    {"busy", on_busy, 0},
    {"busy, unseen", on_busy_unseen, 0},
};

static void simulate_call(const struct machine *machine, struct random *random, double *state,
                          double own_ns, double *ns, double *delay_ns, bool *disturbed)
{
    machine->call(random, state, own_ns, ns, delay_ns);
    *disturbed = *disturbed || *delay_ns > 0.02 * *ns;
}

/* Of a final measurement: the kernel in turns with itself. */
static double simulate_stray(const struct machine *machine, struct random *random, double own_ns)
{
    struct timing timing = {.baseline = NULL};
    double state = 0.0;
    for (size_t i = 0; i < SIMULATED_PAIRS; i++) {
        struct sample *sample = &timing.samples[timing.count++];
        *sample = (struct sample){.distribution = (enum distribution)(i % DRAW_RANDOM_COUNT)};
        simulate_call(machine, random, &state, own_ns, &sample->a_ns, &sample->a_delay_ns,
                      &sample->disturbed);
        simulate_call(machine, random, &state, own_ns, &sample->b_ns, &sample->b_delay_ns,
                      &sample->disturbed);
        timing.disturbed += sample->disturbed;
    }
    return timing_stray(&timing);
}

/* `ratio` times as fast as a baseline of 5 ms; over 5: few samples of the baseline. */
static enum finding simulate(const struct machine *machine, struct random *random, double ratio,
                             bool final)
{
    static const double a_ns = 5e6;
    struct baseline baseline = {.name = "simulated"};
    struct timing timing = {.baseline = &baseline, .shared = ratio > 5.0, .by_rounds = true};
    double state = 0.0;
    size_t shared_most = 2 + (size_t)random_below(random, 4);
    for (size_t i = 0; i < SIMULATED_PAIRS; i++) {
        struct sample sample = {.distribution = (enum distribution)(i % DRAW_RANDOM_COUNT),
                                .round = i / OF_ROUND};
        bool a_first = i % 2 == 0, disturbed = false;
        for (int turn = 0; turn < 2; turn++) {
            bool is_a = (turn == 0) == a_first;
            if (is_a && !timing.shared)
                simulate_call(machine, random, &state, a_ns, &sample.a_ns, &sample.a_delay_ns,
                              &sample.disturbed);
            else if (!is_a)
                simulate_call(machine, random, &state, a_ns / ratio, &sample.b_ns,
                              &sample.b_delay_ns, &sample.disturbed);
        }
        sample.chunk = timing.a_count;
        timing.disturbed += sample.disturbed;
        timing.samples[timing.count++] = sample;
        if (!timing.shared || i % 4 != 3 || timing.a_count == shared_most)
            continue;
        size_t at = timing.a_count++;
        timing.a_distribution[at] = sample.distribution;
        simulate_call(machine, random, &state, a_ns, &timing.a_ns[at], &timing.a_delay_ns[at],
                      &disturbed);
    }
    timing_results(&timing);
    if (final)
        timing.spread = fmax(timing.spread, simulate_stray(machine, random, a_ns / ratio));
    return finding(&timing);
}

/* Thousands of evaluations: what is as fast is next to never called faster or slower, and what is
 * faster never slower, on any machine; and where one can tell, it is told. */
static void test_what_is_said_on_any_machine(void **state)
{
    static const double ratios[] = {1.0, 1.3, 1.0 / 1.3, 1.05, 200.0};
    (void)state;
    printf("%-20s %8s %8s %8s %8s %8s   of %d\n", "simulated machine", "is", "faster", "slower",
           "same", "noisy", EVALUATIONS);
    for (size_t m = 0; m < sizeof machines / sizeof machines[0]; m++)
        for (size_t r = 0; r < sizeof ratios / sizeof ratios[0]; r++) {
            struct random random;
            int said[FINDING_NOISY + 1] = {0};
            random_init(&random, 1000 * m + r);
            for (int i = 0; i < EVALUATIONS; i++)
                said[simulate(&machines[m], &random, ratios[r], false)]++;
            printf("%-20s %7.2fx %8d %8d %8d %8d\n", r == 0 ? machines[m].name : "", ratios[r],
                   said[FINDING_FASTER], said[FINDING_SLOWER], said[FINDING_SAME],
                   said[FINDING_NOISY]);
            if (ratios[r] <= 1.0)
                assert_true(said[FINDING_FASTER] <= EVALUATIONS / 200);
            if (ratios[r] >= 1.0)
                assert_true(said[FINDING_SLOWER] <= EVALUATIONS / 200);
            if (ratios[r] > 1.2)
                assert_true(said[FINDING_FASTER] * 100 >= EVALUATIONS * machines[m].says_most);
        }
}

/* A final measurement is no laxer than the others on any machine, and where every call waits for
 * other programs it still finds a kernel that is many times as fast: that its run in turns with
 * itself was disturbed, too, is in the interval already. */
static void test_what_a_final_says(void **state)
{
    static const double ratios[] = {1.0, 1.0 / 1.3, 40.0};
    (void)state;
    for (size_t m = 0; m < sizeof machines / sizeof machines[0]; m++)
        for (size_t r = 0; r < sizeof ratios / sizeof ratios[0]; r++) {
            struct random random;
            int found = 0, found_else = 0;
            random_init(&random, 100 * m + r);
            for (int i = 0; i < EVALUATIONS; i++) {
                found += simulate(&machines[m], &random, ratios[r], true) == FINDING_FASTER;
                found_else += simulate(&machines[m], &random, ratios[r], false) == FINDING_FASTER;
            }
            printf("%-20s %7.2fx: faster %d in finals, %d else\n", machines[m].name, ratios[r],
                   found, found_else);
            if (ratios[r] <= 1.0)
                assert_true(found <= EVALUATIONS / 200);
            else
                assert_true(found * 2 >= found_else);
        }
}

/* --- the floor --- */

/* By a device's clock: none is slow by chance. */
static void slow_product(const struct fake_call *call)
{
    *call->cost_ns = 100 * FAKE_COST_NS;
    fake_product(call);
}

/* As slow beside something else on the device, which half of the checks are made beside. */
static void minds_company(const struct fake_call *call)
{
    *call->cost_ns = call->call->crowded ? 100 * FAKE_COST_NS : FAKE_COST_NS;
    fake_product(call);
}

static const struct fake_entry kernels[] = {
    {"product", minds_company}, {"slow_product", slow_product}, {NULL, NULL}};

/* `source`, under a ceiling; against the baseline, or in turns with another kernel. */
static struct evaluation measure_one(double ceiling, const char *source, const char *other)
{
    static struct evaluation evaluation;
    struct folder folder, builds;
    struct problem *problem;
    struct candidate *candidate, *rival = NULL;
    struct session *session;
    struct lane_facts lane;
    struct names tune, rival_tune;
    struct err err = {0};
    struct arena *arena = arena_new();
    int core = 0;
    struct backend backend = fake_backend;
    fake_kernels = kernels;
    fake_ceiling = ceiling;
    fake_gpu = fake_costs = other != NULL;
    if (other != NULL)
        backend.open = fake_open_on_device;
    fake_problem(&folder, "def reference(A, B):\n    return A @ B\n", "");
    folder_make(&builds);
    struct session_options options = {.folder = builds.path,
                                      .baseline = "product",
                                      .call_timeout_ms = 600000,
                                      .time_budget_ms = 10,
                                      .memory_bytes = 1 << 20};
    assert_int_equal(problem_load(folder.path, &problem, &err), 0);
    assert_int_equal(fake_probe(&core, 1, true, arena, &lane, &err), 0);
    assert_int_equal(session_open(problem, &backend, &lane, &options, &session, &err), 0);
    assert_int_equal(candidate_parse(problem, "c.c", source, strlen(source), &candidate, &err), 0);
    tune_at(candidate, 0, &tune);
    if (other != NULL) {
        assert_int_equal(candidate_parse(problem, "d.c", other, strlen(other), &rival, &err), 0);
        tune_at(rival, 0, &rival_tune);
    }
    const struct rival_kernel asked = {rival, &rival_tune};
    struct measure_request request = {
        .candidate = candidate, .tune = &tune, .artifact = source, .effort = EFFORT_SEARCH};
    request.rival = other != NULL ? &asked : NULL;
    evaluation = (struct evaluation){0};
    assert_int_equal(session_measure(session, &request, arena, &evaluation, &err), 0);
    evaluation.reason = strstr(evaluation.reason, "bytes floor") != NULL ? "bytes floor" : "";
    evaluation.metrics =
        strstr(evaluation.metrics, "operations floor") != NULL ? "operations floor" : "";
    candidate_free(candidate);
    candidate_free(rival);
    session_close(session);
    problem_free(problem);
    arena_free(arena);
    folder_remove(&folder);
    folder_remove(&builds);
    return evaluation;
}

static void test_the_floor(void **state)
{
    (void)state;
    struct evaluation evaluation =
        measure_one(1e15, "product", NULL); /* a machine faster than any */
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_false(evaluation.quarantined);
    evaluation =
        measure_one(1e3, "product", NULL); /* a kilobyte a second: whoever is faster lies */
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    assert_true(evaluation.quarantined);
    assert_false(evaluation_wins(&evaluation));
    assert_string_equal(evaluation.reason, "bytes floor");
}

/* Two kernels in turns on the same inputs: no baseline is asked, and neither has company. */
static void test_two_kernels_in_turns(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        bool slow = i % 2 == 1;
        struct evaluation evaluation =
            measure_one(1e15, slow ? "slow_product" : "product", slow ? "product" : "slow_product");
        assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
        assert_true(evaluation.speedup.samples >= 5);
        assert_true(slow ? evaluation.speedup.median < 1 : evaluation.speedup.median > 1);
    }
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_win_is_seen),
        cmocka_unit_test(test_a_kernel_against_itself_wins_nothing),
        cmocka_unit_test(test_disturbed_samples),
        cmocka_unit_test(test_who_is_dropped),
        cmocka_unit_test(test_a_drift_is_no_win),
        cmocka_unit_test(test_a_time_may_depend_on_the_inputs),
        cmocka_unit_test(test_few_shared_samples_widen),
        cmocka_unit_test(test_when_it_is_enough),
        cmocka_unit_test(test_what_is_said_on_any_machine),
        cmocka_unit_test(test_what_a_final_says),
        cmocka_unit_test(test_the_floor),
        cmocka_unit_test(test_two_kernels_in_turns),
    };
    return cmocka_run_group_tests_name("measure", tests, NULL, NULL);
}
