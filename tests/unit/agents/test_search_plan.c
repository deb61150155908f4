/* What of a budget of time is kept back for the last measurement, and when it is planned again. */
#include "agents/search/private.h"

#include "check.h"

#include "base/clock.h"
#include "base/mem.h"

static uint64_t stands_still(void *context)
{
    (void)context;
    return UINT64_C(1000000000000000); /* longer ago than any budget began */
}

static int clock_stops(void **state)
{
    (void)state;
    clock_inject(stands_still, NULL);
    return 0;
}

static int clock_goes_on(void **state)
{
    (void)state;
    clock_inject(NULL, NULL);
    return 0;
}

static struct search *timed(int64_t budget_ms, double left_ms)
{
    struct search *search = mem_alloc(sizeof *search);
    search->arena = arena_new();
    search->options = (struct search_options){.budget_ms = budget_ms, .final = true};
    search->started_ns = clock_now_ns() - (uint64_t)(((double)budget_ms - left_ms) * 1e6);
    return search;
}

static void drop_timed(struct search *search)
{
    arena_free(search->arena);
    mem_free(search);
}

/* By the first verdict it is known whether a last measurement fits, whole or without its package.
 * Where none does the search goes on for all of the time: it ended 7 s early. */
static void test_plan(void **state)
{
    (void)state;
    static const struct {
        double left_s;
        int plan;
        bool another, in_flight, final;
    } rows[] = {{30, PLAN_WHOLE, true, true, true}, {18, PLAN_WHOLE, false, true, true},
                {17, PLAN_LEAST, true, true, true}, {9.5, PLAN_LEAST, false, false, true},
                {8.5, PLAN_NONE, true, true, true}, {1, PLAN_NONE, true, true, false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct search *search = timed(60000, rows[i].left_s * 1e3);
        struct lane_request verdict = {.evaluation.verdict = VERDICT_KERNEL,
                                       .evaluation.stage_ms[STAGE_CHECK] = 1500,
                                       .final_ms = 14000,
                                       .final_least_ms = 9000};
        search_learn_cost(search, &verdict);
        search_learn_measured(search, 1000, 0);
        search->time.measured = 3;
        if ((int)search->time.plan != rows[i].plan ||
            search_affords_another(search, 2000) != rows[i].another ||
            search_affords_in_flight(search) != rows[i].in_flight ||
            search_affords_final(search) != rows[i].final)
            fail_msg("row %zu: plan %d, another %d, in flight %d, final %d", i,
                     (int)search->time.plan, search_affords_another(search, 2000),
                     search_affords_in_flight(search), search_affords_final(search));
        uint64_t within = search_within_reserve_ms(search);
        assert_true(within > 0 && within <= search_within_ms(search));
        assert_int_equal(within + 1 < search_within_ms(search), rows[i].plan != PLAN_NONE);
        drop_timed(search);
    }
}

static void tell(struct search *search, double left_s, double time_ns, double speedup_high,
                 double final_s)
{
    struct lane_request verdict = {.evaluation.verdict = VERDICT_KERNEL,
                                   .evaluation.stage_ms[STAGE_CHECK] = 3000,
                                   .evaluation.time_ns.median = time_ns,
                                   .evaluation.speedup = {.samples = 9, .high = speedup_high},
                                   .final_ms = final_s * 1e3,
                                   .final_least_ms = final_s * 600};
    search->earlier_ms = (double)search->options.budget_ms - left_s * 1e3;
    search->started_ns = clock_now_ns();
    search_learn_cost(search, &verdict);
    search->time.measured++;
}

/* KernelBench's product on a GPU: the start of the textbook came first, 0.16x, and its last
 * measurement was planned; the fast one was on its way, and was left for that. What is planned is
 * the best kernel's, and nothing is for one that is slower than its baseline while there are starts
 * that nobody has looked at. */
static void test_plan_again(void **state)
{
    struct search *search = timed(40000, 40000);
    (void)state;
    search->arms[0].number = -1; /* not usable here */
    for (int i = 1; i < 5; i++)
        search->arms[i].number = i - 1;
    search->arm_count = 5;
    tell(search, 16, 16.8e6, 0.17, 20); /* 12 s at least */
    assert_int_equal(search->time.plan, PLAN_LEAST);
    assert_true(search_affords_in_flight(search));
    assert_int_equal(search_within_reserve_ms(search), 16000);
    tell(search, 13, 1.4e6, 1.9, 8);
    assert_int_equal(search->time.plan, PLAN_WHOLE);
    assert_float_equal(search_final_ms(search), 8000, 0);
    assert_true(search_affords_in_flight(search));
    tell(search, 10.5, 14e6, 0.2, 20); /* a slow one more says nothing */
    assert_float_equal(search_final_ms(search), 8000, 0);
    assert_false(search_affords_in_flight(search));
    tell(search, 9, 1.5e6, 1.8, 9); /* one that is about as fast says how busy the machine is */
    assert_float_equal(search_final_ms(search), 9000, 0);
    assert_int_equal(search->time.plan, PLAN_WHOLE);
    tell(search, 4, 1.3e6, 2, 10); /* it had its time, and may have half of it */
    assert_int_equal(search->time.plan, PLAN_LEAST);
    tell(search, 2.9, 1.2e6, 2.1, 10);
    assert_int_equal(search->time.plan, PLAN_NONE);
    drop_timed(search);

    search = timed(40000, 40000); /* when all starts are known, that it is slower is verified */
    search->arm_count = 2;
    search->arms[1].number = 1;
    tell(search, 30, 16.8e6, 0.17, 10);
    assert_int_equal(search_within_reserve_ms(search), 30000);
    tell(search, 25, 15.8e6, 0.18, 10);
    assert_true(search_within_reserve_ms(search) < 25000 - 10000);
    drop_timed(search);
}

/* The first verdict pays for what all share: it is none that another one takes. */
static void test_first_is_dear(void **state)
{
    struct search *search = timed(60000, 60000);
    struct lane_request verdict = {.evaluation.verdict = VERDICT_KERNEL, .final_ms = 8000};
    static const double took_ms[] = {21000, 3000, 2000, 4000},
                        most_ms[] = {21000, 3000, 3000, 4000};
    (void)state;
    for (size_t i = 0; i < COUNT(took_ms); i++) {
        verdict.evaluation.stage_ms[STAGE_CHECK] = took_ms[i];
        search_learn_cost(search, &verdict);
        assert_float_equal(search->time.full_ms, most_ms[i], 0);
    }
    drop_timed(search);
}

/* What is kept back is used: four minutes ended 27 s early. */
static void test_reserve(void **state)
{
    (void)state;
    static const struct {
        double budget_s, left_s;
        bool another;
    } rows[] = {{240, 23, true},   {240, 21, false}, {3600, 33, true},
                {3600, 31, false}, {60, 13, true},   {60, 11, false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct search *search = timed((int64_t)(rows[i].budget_s * 1e3), rows[i].left_s * 1e3);
        search->time.final_ms = 8000;
        search->time.full_ms = 1500;
        search_learn_measured(search, 1000, 0);
        search->time.measured = 3;
        if (search_affords_another(search, 4000) != rows[i].another)
            fail_msg("row %zu", i);
        drop_timed(search);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_plan_again),
        cmocka_unit_test(test_first_is_dear),
        cmocka_unit_test(test_reserve),
    };
    return cmocka_run_group_tests(tests, clock_stops, clock_goes_on);
}
