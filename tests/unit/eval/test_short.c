/* Kernels that take hardly longer than a call itself: that is taken off, or nothing is said. */
#include "../normal.h"
#include "eval/measure/timing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

enum { ROUNDS = 8, OF_ROUND = 4, RUNS = 1000 };

/* Times of the work alone, ns; a call takes `call_ns` more, of which a process's luck is a part. */
static void fill(struct timing *timing, struct random *random, double a_ns, double b_ns,
                 double call_ns, double luck)
{
    *timing = (struct timing){.by_rounds = true, .count = (size_t)ROUNDS * OF_ROUND};
    for (size_t i = 0; i < timing->count; i += OF_ROUND) {
        double more[3];
        for (size_t j = 0; j < 3; j++)
            more[j] = call_ns * (1.0 + luck * random_normal(random));
        for (size_t j = i; j < i + OF_ROUND; j++)
            timing->samples[j] =
                (struct sample){.round = i / OF_ROUND,
                                .a_ns = a_ns + more[0] + 20.0 * random_normal(random),
                                .b_ns = b_ns + more[1] + 20.0 * random_normal(random),
                                .call_ns = more[2] + 20.0 * random_normal(random)};
    }
    timing_results(timing);
}

static enum finding finding(const struct timing *timing)
{
    const struct comparison comparison = timing_comparison(timing);
    return stats_finding(&comparison);
}

/* 17 times as fast, and next to nothing of it is left to see. */
static void test_too_short(void **state)
{
    static struct timing timing;
    struct random random;
    int said[FINDING_NOISY + 1] = {0};
    (void)state;
    random_init(&random, 1);
    for (int run = 0; run < RUNS / 10; run++) {
        fill(&timing, &random, 350, 70, 9500, 0.02);
        assert_false(timing.call_taken);
        assert_true(timing_comparison(&timing).too_short);
        assert_true(timing.b.median > 9000); /* whole calls: nothing was taken off */
        assert_true(finding(&timing) == FINDING_NOISY || finding(&timing) == FINDING_FASTER);
        fill(&timing, &random, 70, 70, 9500, 0.02);
        said[finding(&timing)]++;
    }
    assert_true(said[FINDING_NOISY] > RUNS / 10 - 3 && said[FINDING_SAME] == 0);
}

/* A third of the call is work: what is left is told, with what is not known of the rest. */
static void test_taken_off(void **state)
{
    static struct timing timing;
    struct random random;
    size_t held = 0, held_whole = 0;
    (void)state;
    random_init(&random, 2);
    for (int run = 0; run < RUNS; run++) {
        fill(&timing, &random, 40000, 20000, 10000, 0.01);
        assert_true(timing.call_taken);
        assert_int_equal(finding(&timing), FINDING_FASTER);
        held += timing.ratio.low <= 2.0 && 2.0 <= timing.ratio.high;
        for (size_t i = 0; i < timing.count; i++)
            timing.samples[i].call_ns = NAN;
        timing_results(&timing);
        assert_int_equal(timing.call.samples, 0);
        held_whole += timing.ratio.low <= 2.0 && 2.0 <= timing.ratio.high;
    }
    assert_true(held * 100 >= 93 * RUNS);
    assert_int_equal(held_whole, 0); /* 1.67x */
}

/* What is far faster even with the call in both is called so. */
static void test_a_win_stays_one(void **state)
{
    static struct timing timing;
    struct random random;
    (void)state;
    random_init(&random, 3);
    fill(&timing, &random, 50000, 50, 9500, 0.02);
    assert_false(timing.call_taken);
    assert_int_equal(finding(&timing), FINDING_FASTER);
    assert_true(timing.ratio.high < 7.0); /* of whole calls: no less is claimed than is known */
    assert_true(timing_whole_a(&timing) == timing.a.median);
}

static void test_few_calls_say_nothing(void **state)
{
    static struct timing timing;
    struct random random;
    (void)state;
    random_init(&random, 4);
    fill(&timing, &random, 40000, 20000, 10000, 0.01);
    double whole = timing_whole_a(&timing);
    assert_true(fabs(whole - 50000) < 1000 && timing.a.median < 41000);
    for (size_t i = (size_t)OF_ROUND * 2; i < timing.count; i++)
        timing.samples[i].call_ns = NAN; /* disturbed */
    timing_results(&timing);
    assert_int_equal(timing.call.samples, 0);
    assert_false(timing_comparison(&timing).too_short);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_short), cmocka_unit_test(test_taken_off),
        cmocka_unit_test(test_a_win_stays_one), cmocka_unit_test(test_few_calls_say_nothing)};
    return cmocka_run_group_tests_name("short", tests, NULL, NULL);
}
