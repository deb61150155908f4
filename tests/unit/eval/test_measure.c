/* From samples to a verdict, on samples of known worth; and the floor. */
#include "eval/measure_noise.h"
#include "eval/measure_timing.h"

#include "fake_backend.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static void fill(struct timing *timing, size_t count, double a_ns, double b_ns)
{
    struct random random;
    random_init(&random, 7);
    *timing = (struct timing){.limits = {10, PAIRS_MOST, UINT64_C(1) << 50, 0.01, 0.0},
                              .started_ns = clock_now_ns()};
    for (size_t i = 0; i < count; i++)
        timing->samples[timing->count++] =
            (struct sample){.a_ns = a_ns * (1.0 + 0.004 * (random_unit(&random) - 0.5)),
                            .b_ns = b_ns * (1.0 + 0.004 * (random_unit(&random) - 0.5))};
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
    assert_true(stats_win(&timing.ratio, timing.spread));
}

static void test_a_kernel_against_itself_wins_nothing(void **state)
{
    struct timing timing;
    (void)state;
    fill(&timing, 40, 1e6, 1e6);
    timing_results(&timing);
    assert_false(stats_win(&timing.ratio, timing.spread));
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
    assert_false(stats_win(&timing.ratio, timing.spread));
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
            enum distribution drawn = (enum distribution)random_below(&random, DRAW_RANDOM_COUNT);
            sample->a_ns *= drawn == DRAW_HEAVY ? 1.25 : 1.0;
            sample->distribution = steady ? drawn : DRAW_NORMAL;
        }
        timing_results(&timing);
        assert_true(steady ? timing.spread < 0.01 : timing.spread > 0.08);
        assert_int_equal(stats_win(&timing.ratio, timing.spread), steady);
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
    assert_true(timing.ratio.low < 10.2);
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
    for (size_t i = 0; i < timing.count; i += 2)
        timing.samples[i].b_ns *= 1.5;
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

static void test_flushing_touches_nothing(void **state)
{
    enum { BYTES = 10001 };
    unsigned char *bytes = mem_alloc(BYTES);
    (void)state;
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 31);
    flush_bytes(bytes + 1, BYTES - 1, 1 << 16);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(bytes[i], (unsigned char)(i * 31));
    mem_free(bytes);
}

static void test_noise_of_nobody(void **state)
{
    struct noise before, after;
    (void)state;
    noise_read(getpid(), &before);
    noise_read(getpid(), &after);
    assert_true(after.own_ns >= before.own_ns && after.subject_ns >= before.subject_ns);
    noise_read(0, &after);
    assert_int_equal(after.subject_ns, 0);
}

/* --- the floor --- */

static const struct fake_entry kernels[] = {{"product", fake_product}, {NULL, NULL}};

static struct evaluation measure_under(double ceiling)
{
    static struct evaluation evaluation;
    struct folder folder, builds;
    struct problem *problem;
    struct candidate *candidate;
    struct session *session;
    struct lane_facts lane;
    struct names tune;
    struct err err = {0};
    struct arena *arena = arena_new();
    int core = 0;
    fake_kernels = kernels;
    fake_ceiling = ceiling;
    fake_problem(&folder, "def reference(A, B):\n    return A @ B\n", "");
    folder_make(&builds);
    struct session_options options = {.folder = builds.path,
                                      .baseline = "product",
                                      .time_budget_ms = 10,
                                      .memory_bytes = 1 << 20};
    assert_int_equal(problem_load(folder.path, &problem, &err), 0);
    assert_int_equal(fake_probe(&core, 1, true, arena, &lane, &err), 0);
    assert_int_equal(session_open(problem, &fake_backend, &lane, &options, &session, &err), 0);
    assert_int_equal(candidate_parse(problem, "c.c", "product", 7, &candidate, &err), 0);
    tune_at(candidate, 0, &tune);
    struct measure_request request = {
        .candidate = candidate, .tune = &tune, .artifact = "product", .effort = EFFORT_SEARCH};
    evaluation = (struct evaluation){0};
    assert_int_equal(session_measure(session, &request, arena, &evaluation, &err), 0);
    evaluation.reason = strstr(evaluation.reason, "bytes floor") != NULL ? "bytes floor" : "";
    evaluation.metrics =
        strstr(evaluation.metrics, "operations floor") != NULL ? "operations floor" : "";
    candidate_free(candidate);
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
    struct evaluation evaluation = measure_under(1e15); /* a machine faster than any */
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_false(evaluation.quarantined);
    evaluation = measure_under(1e3); /* a kilobyte a second: whoever is faster lies */
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    assert_true(evaluation.quarantined);
    assert_false(evaluation.win);
    assert_string_equal(evaluation.reason, "bytes floor");
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
        cmocka_unit_test(test_a_drift_is_no_win),
        cmocka_unit_test(test_a_time_may_depend_on_the_inputs),
        cmocka_unit_test(test_few_shared_samples_widen),
        cmocka_unit_test(test_when_it_is_enough),
        cmocka_unit_test(test_flushing_touches_nothing),
        cmocka_unit_test(test_noise_of_nobody),
        cmocka_unit_test(test_the_floor),
    };
    return cmocka_run_group_tests_name("measure", tests, NULL, NULL);
}
