/* Medians, intervals that hold what they promise, and what counts as a win. */
#include "eval/data/stats.h"

#include "../normal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_median(void **state)
{
    const double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
    (void)state;
    assert_true(stats_median(odd, 3) == 3.0);
    assert_true(stats_median(even, 4) == 2.5);
    assert_true(odd[0] == 5.0); /* not reordered */
    assert_true(stats_median(odd, 1) == 5.0);
    assert_true(isnan(stats_median(odd, 0)));
}

static void test_small(void **state)
{
    const double five[] = {3, 1, 5, 2, 4}, one[] = {7};
    struct interval interval;
    (void)state;
    stats_interval(five, 5, &interval);
    assert_true(interval.median == 3 && interval.low == 1 && interval.high == 5);
    assert_int_equal(interval.samples, 5);
    stats_interval(one, 1, &interval);
    assert_true(interval.median == 7 && !stats_has_ends(&interval)); /* of one there is none */
    stats_interval(one, 0, &interval);
    assert_true(isnan(interval.low) && interval.samples == 0);
}

/* Of 95 % intervals at least about 95 % hold the true median, of few samples too. */
static void test_coverage(void **state)
{
    static const size_t counts[] = {7, 20, 51, 200};
    (void)state;
    for (size_t c = 0; c < 4; c++) {
        struct random random;
        int held = 0;
        random_init(&random, c);
        for (int trial = 0; trial < 1000; trial++) {
            double samples[200];
            struct interval interval;
            for (size_t i = 0; i < counts[c]; i++)
                samples[i] = exp(random_normal(&random));
            stats_interval(samples, counts[c], &interval);
            assert_true(interval.low <= interval.median && interval.median <= interval.high);
            held += interval.low <= 1.0 && 1.0 <= interval.high;
        }
        assert_true(held >= 935 && held <= 995);
    }
}

/* Processes whose luck differs by `between`, and calls by `within`; one in ten is disturbed. */
static const struct luck {
    double between, within, disturbed;
} lucks[] = {{0.0, 0.01, 0.0}, {0.01, 0.01, 0.0}, {0.03, 0.003, 0.0}, {0.01, 0.01, 1.0}};

enum { OF_UNIT = 4, UNITS_TRIED = 20, TRIALS = 1000 };

static size_t draw_ratios(struct random *random, const struct luck *luck, size_t units,
                          double *ratios, size_t *unit)
{
    for (size_t i = 0; i < units * OF_UNIT; i += OF_UNIT) {
        double own = luck->between * (random_normal(random) - random_normal(random));
        for (size_t j = i; j < i + OF_UNIT; j++) {
            double log_ratio = own + luck->within * (random_normal(random) - random_normal(random));
            if (random_unit(random) < 0.1)
                log_ratio += luck->disturbed * random_unit(random);
            if (random_unit(random) < 0.1)
                log_ratio -= luck->disturbed * random_unit(random);
            ratios[j] = 1.1 * exp(log_ratio);
            unit[j] = i;
        }
    }
    return units * OF_UNIT;
}

/* Between 93 and 97 of 100 hold the true ratio, whatever part of the noise is a process's, and
 * however few processes there are; the interval over all calls does not. */
static void test_units_are_what_counts(void **state)
{
    static const size_t counts[] = {2, 3, 5, 6, 8, 12, UNITS_TRIED};
    (void)state;
    for (size_t l = 0; l < sizeof lucks / sizeof lucks[0]; l++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            double ratios[UNITS_TRIED * OF_UNIT];
            size_t unit[UNITS_TRIED * OF_UNIT], held = 0, held_by_calls = 0;
            struct random random;
            random_init(&random, 100 * l + c);
            for (int trial = 0; trial < TRIALS; trial++) {
                struct interval interval;
                size_t count = draw_ratios(&random, &lucks[l], counts[c], ratios, unit);
                stats_grouped(ratios, unit, count, &interval);
                assert_true(interval.low <= interval.median && interval.median <= interval.high);
                held += interval.low <= 1.1 && 1.1 <= interval.high;
                stats_interval(ratios, count, &interval);
                held_by_calls += interval.low <= 1.1 && 1.1 <= interval.high;
            }
            printf("between %.3f, within %.3f, %zu units: %.1f %%, by calls %.1f %%\n",
                   lucks[l].between, lucks[l].within, counts[c], 100.0 * (double)held / TRIALS,
                   100.0 * (double)held_by_calls / TRIALS);
            assert_true(held * 100 >= 93 * TRIALS);
            assert_true(held * 100 <= (lucks[l].disturbed > 0.0 ? 99 : 98) * TRIALS);
            if (lucks[l].between > lucks[l].within)
                assert_true(held_by_calls * 100 < 80 * TRIALS);
        }
}

static void test_one_unit_has_no_interval(void **state)
{
    const double ratios[] = {1.0, 1.1, 1.2, 1.3};
    const size_t one[] = {3, 3, 3, 3}, two[] = {3, 3, 4, 4};
    struct interval interval;
    (void)state;
    stats_grouped(ratios, one, 4, &interval);
    assert_true(fabs(interval.median - sqrt(1.1 * 1.2)) < 1e-12);
    assert_false(stats_has_ends(&interval));
    stats_grouped(ratios, two, 4, &interval);
    assert_true(stats_has_ends(&interval) && interval.low < 1.0 && interval.high > 1.3);
    stats_grouped(ratios, two, 0, &interval);
    assert_true(isnan(interval.median) && !stats_has_ends(&interval));
}

/* Of six units the ends are the least and the largest; of eight three Walsh averages are left
 * out on each side: 2 x 5 of 256 sign patterns, 3.9 %. */
static void test_ranks(void **state)
{
    const double six[] = {1, 2, 4, 8, 16, 32}, eight[] = {1, 2, 4, 8, 16, 32, 64, 128};
    const size_t unit[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct interval interval;
    (void)state;
    stats_grouped(six, unit, 6, &interval);
    assert_true(fabs(interval.low - 1) < 1e-9 && fabs(interval.high - 32) < 1e-9);
    stats_grouped(eight, unit, 8, &interval); /* averages of exponents: 0, .5, 1, 1, 1.5, ... */
    assert_true(fabs(interval.low - 2) < 1e-9 && fabs(interval.high - 64) < 1e-9);
    assert_true(fabs(interval.median - sqrt(128)) < 1e-9);
}

static void test_order_does_not_matter(void **state)
{
    double forward[400], backward[400];
    struct interval a, b;
    (void)state;
    for (size_t i = 0; i < 400; i++)
        forward[i] = backward[399 - i] = sin((double)i);
    stats_interval(forward, 400, &a);
    stats_interval(backward, 400, &b);
    assert_memory_equal(&a, &b, sizeof a);
}

static void test_spread(void **state)
{
    const double steady[] = {1.001, 0.999, 1.0, 1.002, 0.998}, biased[] = {1.05, 1.05, 1.05};
    (void)state;
    assert_true(fabs(stats_spread(steady, 5) - 0.002) < 1e-12);
    assert_true(fabs(stats_spread(biased, 3) - 0.05) < 1e-12);
    assert_true(isnan(stats_spread(steady, 0)));
}

/* {speed-up's interval, spread of both, of the baseline, its samples} and what it shows. */
static const struct {
    double low, median, high, spread, baseline_spread;
    size_t baseline_samples;
    enum finding finding;
} shown[] = {
    {1.18, 1.2, 1.22, 0.002, 0.002, 20, FINDING_FASTER},
    {1.01, 1.02, 1.03, 0.0, 0.0, 20, FINDING_SAME}, /* not more than the least margin */
    {1.05, 1.06, 1.07, 0.02, 0.01, 20, FINDING_SAME},
    {1.18, 1.2, 1.22, 0.08, 0.08, 20, FINDING_NOISY}, /* not above 1.24, which is a lot */
    {1.18, 1.2, 1.22, 0.0, 0.0, 2, FINDING_NOISY},    /* 1.2x from two samples of the baseline */
    {190, 200, 210, 0.1, 0.1, 2, FINDING_FASTER},     /* 200x from two */
    {987, 1455, 2019, 1.12, 0.3, 2, FINDING_NOISY},   /* no number means anything */
    {1.18, 1.2, 1.22, (double)NAN, 0.0, 20, FINDING_NOISY},
    {0.78, 0.8, 0.82, 0.002, 0.002, 20, FINDING_SLOWER},
    {0.985, 0.99, 0.995, 0.0, 0.0, 20, FINDING_SAME}, /* as little as the other way round */
    {0.78, 0.8, 0.82, 0.1, 0.1, 20, FINDING_NOISY},
    {0.6, 0.7, 0.8, 0.9, 0.01, 20, FINDING_SLOWER}, /* unsteady on purpose helps nobody */
    {0.6, 0.7, 0.8, 0.9, 0.9, 20, FINDING_NOISY},
    {0.7, 1.0, 1.4, 0.01, 0.01, 20, FINDING_NOISY}, /* an interval that says nothing */
};

static void test_findings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        const struct comparison comparison = {
            .speedup = {shown[i].median, shown[i].low, shown[i].high, 20, 0},
            .spread = shown[i].spread,
            .baseline_spread = shown[i].baseline_spread,
            .baseline_samples = shown[i].baseline_samples};
        if (stats_finding(&comparison) != shown[i].finding)
            fail_msg("row %zu: %s", i, finding_name(stats_finding(&comparison)));
    }
    assert_int_equal(stats_finding(&(struct comparison){.spread = 0.0}), FINDING_NONE);
    for (int finding = FINDING_NONE; finding <= FINDING_NOISY; finding++)
        assert_int_equal(finding_of(finding_name((enum finding)finding)), finding);
}

/* Of two baselines that are as fast the one whose interval is wide; not one that is far slower,
 * however wide its own is. */
static void test_least_claim(void **state)
{
    static const struct comparison naive = {.speedup = {197, 0.5, 202, 20, 0}},
                                   library = {.speedup = {1.124, 1.111, 1.143, 20, 0}},
                                   reference = {.speedup = {1.127, 1.04, 1.17, 20, 0}},
                                   faster = {.speedup = {1.01, 1.0, 1.02, 20, 0}};
    (void)state;
    assert_int_equal(stats_least_claim((const struct comparison *[]){&library}, 1), 0);
    assert_int_equal(
        stats_least_claim((const struct comparison *[]){&naive, &library, &reference}, 3), 2);
    assert_int_equal(
        stats_least_claim((const struct comparison *[]){&reference, &naive, &library}, 3), 0);
    assert_int_equal(stats_least_claim((const struct comparison *[]){&library, &faster}, 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_least_claim),
                                       cmocka_unit_test(test_median),
                                       cmocka_unit_test(test_small),
                                       cmocka_unit_test(test_coverage),
                                       cmocka_unit_test(test_units_are_what_counts),
                                       cmocka_unit_test(test_one_unit_has_no_interval),
                                       cmocka_unit_test(test_ranks),
                                       cmocka_unit_test(test_order_does_not_matter),
                                       cmocka_unit_test(test_spread),
                                       cmocka_unit_test(test_findings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
