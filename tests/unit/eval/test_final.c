/* What a final measurement asks and costs, and what it leaves out where its time is short. */
#include "one_session.h"

/* A baseline that is called only with an eye on the clock. */
static void bounded(const struct fake_call *f)
{
    if (f->call->timeout_ms >= 100000)
        abort();
    fake_product(f);
}

/* Right sixty times after it was loaded, which no other call of an evaluation gets to. */
static void tires(const struct fake_call *f)
{
    static unsigned calls;
    if (++calls <= 60)
        fake_product(f);
}

static const struct fake_entry kernels[] = {
    {"product", fake_product}, {"bounded", bounded}, {"tires", tires}, {NULL, NULL}};

static int set_up(void **state)
{
    static struct fixture f;
    *state = &f;
    return open_product(&f, kernels);
}

static uint64_t breathe(void *breather)
{
    ++*(unsigned *)breather;
    return 0;
}

/* Others are let in while it is timed, but no longer once its time is up. */
static void test_a_late_champion_lets_nobody_in(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct measure_request request = f->request;
    unsigned breaths = 0;
    request.effort = EFFORT_FINAL;
    request.breathe = breathe;
    request.breather = &breaths;
    for (uint64_t within_ms = 0; within_ms < 2; within_ms++) {
        struct evaluation evaluation = {0};
        breaths = 0;
        request.within_ms = within_ms; /* 0: no hurry */
        assert_int_equal(session_measure(f->session, &request, f->arena, &evaluation, &f->err), 0);
        assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
        assert_int_equal(breaths > 0, within_ms == 0);
    }
}

/* What every champion must pass stays; what is for the record alone goes, and that is said. */
static void test_a_champion_in_a_hurry(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct evaluation evaluation = {0};
    double least;
    assert_true(session_final_ms(f->session, &least) == 0.0 &&
                least == 0.0); /* nobody knows before the first kernel */
    measure(f, EFFORT_SEARCH);
    assert_true(session_final_ms(f->session, &least) >= f->session->costs.sets_ms &&
                f->session->costs.sets_ms > 0.0 && least >= f->session->costs.sets_ms);
    struct measure_request request = f->request;
    request.effort = EFFORT_FINAL;
    request.profile = true;
    request.within_ms = 1;
    assert_int_equal(session_measure(f->session, &request, f->arena, &evaluation, &f->err), 0);
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_true(evaluation.speedup.samples > 0 && evaluation.checks_passed > 0);
    assert_int_equal(evaluation.hot_ns.samples, 0);
    assert_null(strstr(evaluation.baselines, "\"reference\""));
    assert_non_null(strstr(evaluation.baselines, "\"product\""));
    assert_non_null(strstr(evaluation.metrics, "left out for want of time: reference"));
    assert_non_null(strstr(evaluation.metrics, "want of time: the profile"));
}

static void test_a_champion_that_tires(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct measure_request request = f->request;
    request.artifact = "tires";
    for (int i = 0; i < 2; i++) {
        struct evaluation evaluation = {0};
        request.effort = i == 0 ? EFFORT_FULL : EFFORT_FINAL;
        assert_int_equal(session_measure(f->session, &request, f->arena, &evaluation, &f->err), 0);
        assert_int_equal(evaluation.verdict, i == 0 ? VERDICT_KERNEL : VERDICT_REJECTED);
        if (i > 0)
            assert_memory_equal(evaluation.reason, "in call 61 of a program that was loaded", 39);
    }
}

/* A naive product of 2048 took three calls of 50 s each of a run of 80 s, and the libraries behind
 * it went without. */
static void test_a_final_and_slow_baselines(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    struct evaluation evaluation = {0};
    size_t count = session->baseline_count;
    struct measure_request request = f->request;
    request.effort = EFFORT_FINAL;
    request.within_ms = 100000;
    session->baselines[session->baseline_count++] = (struct baseline){.name = "minutes",
                                                                      .file = "",
                                                                      .artifact = "product",
                                                                      .verified = true,
                                                                      .verified_ns = 1e12};
    session->baselines[session->baseline_count++] =
        (struct baseline){.name = "bounded", .file = "", .artifact = "bounded"};
    struct baseline *known = &session->baselines[session->baseline_count++];
    *known = (struct baseline){.name = "known", .file = "", .artifact = "product"};
    baseline_remember(known, 1e4);
    assert_int_equal(session_measure(session, &request, f->arena, &evaluation, &f->err), 0);
    const char *at = strstr(evaluation.baselines, "\"known\"");
    assert_non_null(at);
    assert_non_null(strstr(at, "\"bounded\""));
    assert_null(strstr(evaluation.baselines, "\"minutes\""));
    assert_non_null(strstr(evaluation.left_out, "minutes"));
    assert_int_equal(session->baseline_most_ms, 0);
    while (session->baseline_count > count)
        baseline_free(session, &session->baselines[--session->baseline_count]);
}

/* Of a layer norm of 256 MiB on an H100, whose final took 14.4 s: 10 pairs of 330 ms, since PyTorch
 * takes 150 to take its inputs. And of a short kernel there, which uses its budgets up. */
static void test_what_a_final_costs(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    struct lane_facts gpu = *session->lane;
    const struct lane_facts *own = session->lane;
    const struct costs before = session->costs;
    struct evaluation evaluation = {
        .verdict = VERDICT_KERNEL, .timed_samples = 9, .dropped_samples = 1};
    const struct spent on_sets = {.check_ms = 600, .time_ms = 500};
    gpu.gpu = true;
    session->lane = &gpu;
    session->costs = (struct costs){.spent_ms = 1000};
    evaluation.stage_ms[STAGE_CHECK] = 1600;
    evaluation.stage_ms[STAGE_TIME] = 3800;
    evaluation.stage_ms[STAGE_SANITIZE] = 2500;
    cost_learn(session, &evaluation, &on_sets);
    assert_true(session->costs.pair_ms == 330.0 && session->costs.calls_ms == 1000.0);
    double least_ms = 1000 + 1000 + 2000 + 2500, needed_ms,
           slow_ms = session_final_ms(session, &needed_ms);
    assert_true(slow_ms >= least_ms + 15 * 330 && slow_ms < 17400);
    session->costs.pair_ms = 10;
    double short_ms = least_ms + 14 * (double)session->options.time_budget_ms;
    assert_true(session_final_ms(session, &needed_ms) >= short_ms);
    session->lane = own;
    assert_true(session_final_ms(session, &needed_ms) < short_ms);
    session->costs = before;
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_champion_in_a_hurry),
        cmocka_unit_test(test_a_late_champion_lets_nobody_in),
        cmocka_unit_test(test_a_champion_that_tires),
        cmocka_unit_test(test_a_final_and_slow_baselines),
        cmocka_unit_test(test_what_a_final_costs),
    };
    return cmocka_run_group_tests_name("final", tests, set_up, tear_down);
}
