/* Impact on tables whose answer is known, and what a ladder of sizes is judged by. */
#include "../normal.h"
#include "tuning/tuning.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { WIDTH = 4, VALUES = 4, ALL = 256 };
static const char *const names[WIDTH] = {"BIG", "SMALL", "NONE", "OTHER"};

static int64_t space[ALL * WIDTH];
static double times[ALL];

static void assert_near(double number, double expected, double error)
{
    assert_true(fabs(number - expected) <= error);
}

typedef double law(const int64_t *point);

/* Every point of 4 x 4 x 4 x 4, its time by `law` with a seeded error. */
static void fill(law *time, double noise, uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    for (size_t i = 0; i < ALL; i++) {
        for (size_t j = 0, rest = i; j < WIDTH; j++, rest /= VALUES)
            space[i * WIDTH + j] = 8 << (rest % VALUES);
        times[i] = 1e6 * exp(time(space + i * WIDTH) + noise * random_normal(&random));
    }
}

static void judge(size_t first, size_t count, struct tuning_impact *impact)
{
    const struct tuning_table table = {.parameters = WIDTH,
                                       .names = names,
                                       .count = count,
                                       .points = space + first * WIDTH,
                                       .time_ns = times + first,
                                       .space_count = ALL,
                                       .space = space};
    tuning_impact(&table, impact);
}

/* By chance, so that the first few are as good as any. */
static void shuffle(void)
{
    struct random random;
    random_init(&random, 5);
    for (size_t i = ALL; i > 1; i--) {
        size_t other = (size_t)random_below(&random, i);
        double time = times[i - 1];
        times[i - 1] = times[other];
        times[other] = time;
        for (size_t j = 0; j < WIDTH; j++) {
            int64_t kept = space[(i - 1) * WIDTH + j];
            space[(i - 1) * WIDTH + j] = space[other * WIDTH + j];
            space[other * WIDTH + j] = kept;
        }
    }
}

/* log2 of a value: 3 to 6. */
static double level(int64_t value)
{
    return log2((double)value);
}

static double additive(const int64_t *at)
{
    return 0.4 * level(at[0]) - 0.1 * level(at[1]) + 0.02 * level(at[3]);
}

static double mixed(const int64_t *at)
{
    return 0.1 * level(at[3]) + (level(at[0]) - 4.5) * (level(at[1]) - 4.5) * 0.2;
}

static double nothing(const int64_t *at)
{
    (void)at;
    return 0;
}

static void test_known_costs(void **state)
{
    struct tuning_impact impact;
    (void)state;
    fill(additive, 0.005, 1);
    judge(0, ALL, &impact);
    assert_null(impact.why);
    assert_int_equal(impact.count, WIDTH);
    assert_string_equal(impact.effects[0].name, "BIG");
    assert_string_equal(impact.effects[1].name, "SMALL");
    assert_string_equal(impact.effects[2].name, "OTHER");
    assert_near(impact.effects[0].cost.cost, exp(1.2), 0.05); /* over three steps */
    assert_near(impact.effects[1].cost.cost, exp(0.3), 0.02);
    assert_near(impact.effects[3].cost.cost, 1, 0.01);
    for (size_t i = 0; i < WIDTH; i++) {
        assert_true(impact.effects[i].cost.low >= 1);
        assert_true(impact.effects[i].cost.low <= impact.effects[i].cost.cost);
        assert_true(impact.effects[i].cost.high >= impact.effects[i].cost.cost);
        assert_int_equal(impact.effects[i].levels, VALUES);
    }
    assert_int_equal(impact.effects[0].best, 8);
    assert_int_equal(impact.effects[1].best, 64);
    assert_int_equal(impact.pair_count, 0);
    assert_true(impact.explained > 0.98);
}

static void test_pairs(void **state)
{
    struct tuning_impact impact;
    (void)state;
    fill(mixed, 0.01, 2);
    judge(0, ALL, &impact);
    assert_null(impact.why);
    assert_int_equal(impact.pair_count, 1);
    assert_string_equal(impact.pairs[0].a, "BIG");
    assert_string_equal(impact.pairs[0].b, "SMALL");
    /* 0.2 times the steps of both apart, of which the mean is 5/3 where they differ. */
    assert_near(impact.pairs[0].cost.cost, exp(0.2 * 25 / 9), 0.1);
    /* What neither does alone counts for both: 0.2 x 3 steps x 1 on average from the middle. */
    for (int i = 0; i < 2; i++)
        assert_near(impact.effects[i].cost.cost, exp(0.6), 0.05);
    assert_string_equal(impact.effects[3].name, "NONE");
}

static void test_a_fifth_agrees(void **state)
{
    struct tuning_impact whole, some;
    (void)state;
    fill(additive, 0.02, 3);
    shuffle();
    judge(0, ALL, &whole);
    judge(ALL / 2, ALL / 5, &some);
    assert_null(some.why);
    assert_true(some.effects[0].cost.high - some.effects[0].cost.low > 0.002);
    assert_true(tuning_agreement(&whole, &some) > 0.9);
    assert_near(tuning_agreement(&whole, &whole), 1, 1e-9);
    some.effects[0].cost.cost = 0; /* the first one is the last now */
    assert_true(tuning_agreement(&whole, &some) < 0);
}

/* A tenth of the points were disturbed, and say so. */
static void test_disturbed_points_say_little(void **state)
{
    static double error[ALL];
    struct tuning_impact impact;
    struct tuning_table table = {.parameters = WIDTH,
                                 .names = names,
                                 .count = ALL,
                                 .points = space,
                                 .time_ns = times,
                                 .space_count = ALL,
                                 .space = space};
    (void)state;
    fill(additive, 0.02, 7);
    for (size_t i = 0; i < ALL; i += 10) {
        times[i] *= 20;
        error[i] = 1.5;
    }
    tuning_impact(&table, &impact);
    assert_non_null(impact.why);
    table.error = error;
    tuning_impact(&table, &impact);
    assert_null(impact.why);
    assert_true(impact.noise == 0 && impact.differ > 0.5); /* most points are known well */
    assert_string_equal(impact.effects[0].name, "BIG");
    assert_near(impact.effects[0].cost.cost, exp(1.2), 0.1);
}

static void test_noise_is_no_finding(void **state)
{
    struct tuning_impact impact;
    (void)state;
    fill(nothing, 0.1, 4);
    judge(0, ALL, &impact);
    assert_non_null(strstr(impact.why, "too few"));
    assert_near(impact.differ, 0.1, 0.02);
    shuffle();
    judge(0, ALL / 8, &impact); /* so few that a model which has met them all repeats them */
    assert_true(impact.explained < 0.2);
    judge(0, 7, &impact);
    assert_non_null(impact.why);
    assert_int_equal(impact.count, 0);
    for (size_t i = 0; i < ALL; i++)
        times[i] = 1e6; /* nothing matters at all */
    judge(0, ALL, &impact);
    assert_non_null(impact.why);
    for (size_t i = 0; i < WIDTH; i++)
        assert_true(isfinite(impact.effects[i].cost.high));
}

static void test_one_value(void **state)
{
    struct tuning_impact impact;
    size_t one = 0;
    (void)state;
    fill(additive, 0.01, 6);
    for (size_t i = 0; i < ALL; i++)
        space[i * WIDTH + 1] = 8;
    judge(0, ALL, &impact);
    for (size_t i = 0; i < WIDTH; i++)
        one += impact.effects[i].levels == 1;
    assert_int_equal(one, 1);
    assert_string_equal(impact.effects[0].name, "BIG");
    fill(mixed, 0.01, 6);
    for (size_t i = 0; i < ALL; i++)
        space[i * WIDTH + 2] = 8;
    judge(0, ALL, &impact);
    for (size_t i = 0; i < impact.pair_count; i++) /* none with the one that has no other value */
        assert_true(strcmp(impact.pairs[i].a, "NONE") != 0 &&
                    strcmp(impact.pairs[i].b, "NONE") != 0);
}

/* What is large together does not fit. */
static bool fits(void *context, const int64_t *point)
{
    (void)context;
    return point[0] * point[1] <= 512;
}

/* The costs are what the times of the valid points say: the mean of worst over best among points
 * which differ in one parameter alone. */
static void test_costs_of_valid_points(void **state)
{
    struct tuning_impact impact;
    size_t count = 0;
    (void)state;
    fill(mixed, 0.001, 8);
    for (size_t i = 0; i < ALL; i++)
        if (fits(NULL, space + i * WIDTH)) {
            memmove(space + count * WIDTH, space + i * WIDTH, WIDTH * sizeof *space);
            times[count++] = times[i];
        }
    const struct tuning_table table = {.parameters = WIDTH,
                                       .names = names,
                                       .count = count,
                                       .points = space,
                                       .time_ns = times,
                                       .space_count = count,
                                       .space = space,
                                       .valid = fits};
    tuning_impact(&table, &impact);
    assert_null(impact.why);
    for (size_t j = 0; j < WIDTH; j++) {
        const struct tuning_effect *effect = &impact.effects[j];
        double sum = 0;
        for (size_t i = 0; i < count; i++) {
            double least = INFINITY, most = 0;
            for (size_t k = 0; k < count; k++) {
                size_t same = 0;
                for (size_t p = 0; p < WIDTH; p++)
                    same += space[i * WIDTH + p] == space[k * WIDTH + p] ||
                            strcmp(names[p], effect->name) == 0;
                if (same < WIDTH)
                    continue;
                least = fmin(least, times[k]);
                most = fmax(most, times[k]);
            }
            sum += log(most / least);
        }
        assert_near(effect->cost.cost, exp(sum / (double)count), 0.02);
    }
}

static struct tuning_rung rung(double speedup, enum finding finding)
{
    return (struct tuning_rung){.right = true,
                                .reason = "",
                                .speedup = {speedup, speedup, speedup, 9, 0},
                                .finding = finding};
}

static void test_ladder(void **state)
{
    struct tuning_rung rungs[3] = {rung(1, FINDING_FASTER), rung(2, FINDING_FASTER),
                                   rung(3, FINDING_SAME)};
    struct tuning_ladder ladder = {.kernel = "r1-c1", .rungs = rungs, .count = 3, .wanted = 3};
    (void)state;
    tuning_judge_ladder(&ladder);
    assert_true(ladder.stable && ladder.right);
    assert_near(ladder.variation, 0.5, 1e-9);
    ladder.wanted = 4;
    tuning_judge_ladder(&ladder);
    assert_false(ladder.stable);
    ladder.wanted = 3;
    for (int i = 0; i < 3; i++) {
        static const enum finding bad[] = {FINDING_SLOWER, FINDING_NOISY, FINDING_NONE};
        rungs[1].finding = bad[i];
        tuning_judge_ladder(&ladder);
        assert_true(ladder.right && !ladder.stable);
    }
    rungs[1] = rung(2, FINDING_FASTER);
    rungs[1].right = false;
    tuning_judge_ladder(&ladder);
    assert_false(ladder.right || ladder.stable);
    ladder.count = 0;
    tuning_judge_ladder(&ladder);
    assert_false(ladder.right || ladder.stable);
    assert_true(isnan(ladder.variation));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_costs),    cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_a_fifth_agrees), cmocka_unit_test(test_noise_is_no_finding),
        cmocka_unit_test(test_one_value),      cmocka_unit_test(test_disturbed_points_say_little),
        cmocka_unit_test(test_ladder),         cmocka_unit_test(test_costs_of_valid_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
