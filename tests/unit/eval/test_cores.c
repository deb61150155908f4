/* An adapter that computes on the lane's cores has a clock of its own, which others there slow. */
#include "../normal.h"
#include "eval/measure/timing.h"

#include "one_session.h"

#include <math.h>

static unsigned opened; /* processes of the baseline */

/* One clock for both: the baseline waits half of its time for a core. */
static int run_by_its_clock(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                            struct err *err)
{
    static unsigned turn;
    const bool baseline = strcmp(subject->name, "product") == 0;
    const uint64_t own_ns = 1000000 + 500 * (turn++ % 5);
    int status = fake_run(subject, call, elapsed_ns, err);
    subject->waited_ns = baseline ? own_ns : 0;
    *elapsed_ns = own_ns + subject->waited_ns;
    return status;
}

static int open_on_cores(const struct lane_facts *lane, const struct region *region,
                         const char *artifact, const struct program *program, bool fresh,
                         struct subject **subject, struct err *err)
{
    static const struct subject_ops ops = {run_by_its_clock, fake_pause, fake_resume, fake_close};
    if (fake_open(lane, region, artifact, program, fresh, subject, err) != 0)
        return -1;
    (*subject)->ops = &ops;
    (*subject)->name = artifact;
    (*subject)->device_clock = true;
    opened += strcmp(artifact, "product") == 0;
    return 0;
}

/* Timed by our clock, each process with a luck of its own, kept where nobody looks without a device
 * clock: some are slower by a twentieth for life. */
static int run_by_luck(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                       struct err *err)
{
    static unsigned turn;
    int status = fake_run(subject, call, elapsed_ns, err);
    *elapsed_ns = (100000 + turn++ % 7 * 10) * (subject->waited_ns != 0 ? 21 : 20) / 20;
    return status;
}

static int open_with_luck(const struct lane_facts *lane, const struct region *region,
                          const char *artifact, const struct program *program, bool fresh,
                          struct subject **subject, struct err *err)
{
    static const struct subject_ops ops = {run_by_luck, fake_pause, fake_resume, fake_close};
    static const uint64_t slow[] = {1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0};
    static unsigned processes;
    if (fake_open(lane, region, artifact, program, fresh, subject, err) != 0)
        return -1;
    (*subject)->ops = &ops;
    (*subject)->waited_ns = slow[processes++ % (sizeof slow / sizeof slow[0])];
    opened += strcmp(artifact, "product") == 0;
    return 0;
}

/* On a device of its own: processes change hands, the last one given back first, and one in two is
 * slower by a twentieth. Where nobody looks without guards lies whether it is. */
static uint64_t given_back[16];
static size_t given_back_count;

static void close_for_others(struct subject *subject)
{
    given_back[given_back_count++] = subject->hit_offset;
    fake_close(subject);
}

static int run_on_device(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                         struct err *err)
{
    static unsigned turn;
    int status = fake_run(subject, call, elapsed_ns, err);
    *elapsed_ns = (100000 + turn++ % 7 * 10) * (subject->hit_offset % 2 != 0 ? 21 : 20) / 20;
    return status;
}

static int open_on_device(const struct lane_facts *lane, const struct region *region,
                          const char *artifact, const struct program *program, bool fresh,
                          struct subject **subject, struct err *err)
{
    static const struct subject_ops ops = {run_on_device, fake_pause, fake_resume,
                                           close_for_others};
    static uint64_t processes;
    if (fake_open(lane, region, artifact, program, fresh, subject, err) != 0)
        return -1;
    (*subject)->ops = &ops;
    (*subject)->device_clock = (*subject)->gives_back = true;
    (*subject)->hit_offset = given_back_count > 0 ? given_back[--given_back_count] : processes++;
    return 0;
}

static const struct fake_entry kernels[] = {
    {"product", fake_product}, {"same", fake_product}, {NULL, NULL}};

static int set_up(void **state)
{
    static struct fixture f;
    static struct backend on_cores;
    *state = &f;
    on_cores = fake_backend;
    on_cores.open = open_on_cores;
    on_cores.device = true;
    int status = open_product(&f, kernels);
    f.session->backend = &on_cores;
    baseline_close(f.session, &f.session->baselines[f.session->baseline]);
    f.lane.gpu = true;
    f.request.artifact = "same";
    opened = 0;
    return status;
}

static void test_who_waits_for_a_core_is_not_slower(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    assert_int_equal(names_set(&f->lane.facts, "software", 1, &f->err), 0);
    for (int i = 0; i < 2; i++) {
        struct evaluation evaluation = {0};
        f->session->load = -1.0;
        assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err),
                         0);
        assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
        assert_true(evaluation.speedup.low < 1.01 && evaluation.speedup.high > 1.98);
        assert_int_equal(evaluation.finding, FINDING_NOISY);
        assert_true(f->session->load >= 0.0); /* whether the cores are quiet was looked at */
    }
    assert_int_equal(opened, 2);                 /* no process's luck decides a session */
    assert_false(session_by_device(f->session)); /* compilers wait */
}

static void test_a_device_of_its_own(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    f->session->load = -1.0;
    for (int i = 0; i < 2; i++)
        measure(f, EFFORT_SEARCH);
    assert_true(f->session->load < 0.0);
    assert_int_equal(opened, 1);
    assert_true(session_by_device(f->session));
}

/* A fresh process of each in every round, and the interval knows what their luck does. */
static void test_no_process_decides(void **state)
{
    static struct backend with_luck;
    struct fixture *f = (struct fixture *)*state;
    struct evaluation evaluation = {0};
    with_luck = fake_backend;
    with_luck.open = open_with_luck;
    f->session->backend = &with_luck;
    f->lane.gpu = false;
    assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err), 0);
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_true(opened >= 6 && evaluation.speedup.processes >= 6);
    assert_true(evaluation.speedup.low <= 1.0 && evaluation.speedup.high >= 1.0);
    assert_true(evaluation.speedup.high - evaluation.speedup.low > 0.02);
    assert_int_not_equal(evaluation.finding, FINDING_FASTER);
    assert_int_not_equal(evaluation.finding, FINDING_SLOWER);
}

/* Two processes, the one slower for life: each has both kernels half of the time. */
static void test_both_are_in_either_process(void **state)
{
    static struct backend on_device;
    struct fixture *f = (struct fixture *)*state;
    struct evaluation evaluation = {0};
    on_device = fake_backend;
    on_device.open = open_on_device;
    on_device.device = true;
    f->session->backend = &on_device;
    given_back_count = 0;
    assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err), 0);
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_int_equal(evaluation.speedup.processes, 2);
    assert_true(evaluation.speedup.low <= 1.0 && evaluation.speedup.high >= 1.0);
    assert_true(evaluation.speedup.high - evaluation.speedup.low < 0.03);
    assert_true(evaluation.timed_samples % 4 == 0);
}

/* A kernel against itself in two processes of 3 % more or less: who stays in one is told apart. */
static void test_places_cancel_luck(void **state)
{
    enum { RUNS = 1000, OF_ROUND = 6, ROUNDS = 8 };
    static struct timing timing;
    struct random random;
    size_t held = 0, stayed = 0;
    (void)state;
    random_init(&random, 6);
    for (int run = 0; run < RUNS; run++) {
        double luck = exp(0.03 * random_normal(&random));
        for (int swaps = 0; swaps < 2; swaps++) {
            timing = (struct timing){.swaps = swaps,
                                     .rounds = ROUNDS,
                                     .pairs_of_round = OF_ROUND,
                                     .count = ROUNDS * OF_ROUND};
            for (size_t i = 0; i < timing.count; i++) {
                bool changed = swaps && i / OF_ROUND % 2 != 0;
                timing.samples[i] = (struct sample){
                    .round = i / OF_ROUND,
                    .a_ns = 1e4 * (changed ? 1.0 : luck) * exp(0.01 * random_normal(&random)),
                    .b_ns = 1e4 * (changed ? luck : 1.0) * exp(0.01 * random_normal(&random))};
            }
            timing_results(&timing);
            *(swaps ? &held : &stayed) += timing.ratio.low <= 1.0 && timing.ratio.high >= 1.0;
        }
        assert_true(timing.spread < 0.02); /* luck is no noise of a call's */
    }
    assert_true(held * 100 >= 93 * RUNS && held * 100 <= 99 * RUNS);
    assert_true(stayed * 100 <= 30 * RUNS);
    timing.limits = (struct limits){.pairs_least = 10, .budget_ns = UINT64_MAX, .narrow = 1.0};
    timing.in_round = OF_ROUND;
    assert_true(timing_enough(&timing));
    timing.count -= OF_ROUND;
    timing.rounds--; /* one of them was in one of the processes alone */
    assert_false(timing_enough(&timing));
}

/* A kernel against itself, in processes that differ by more than their calls do. */
static void test_rounds_are_units(void **state)
{
    enum { RUNS = 1000, ROUNDS = 8, OF_ROUND = 4 };
    static struct timing timing;
    struct random random;
    size_t held = 0;
    (void)state;
    random_init(&random, 5);
    for (int run = 0; run < RUNS; run++) {
        timing = (struct timing){.by_rounds = true, .count = ROUNDS * OF_ROUND};
        for (size_t i = 0; i < timing.count; i += OF_ROUND) {
            double a = exp(0.02 * random_normal(&random)), b = exp(0.02 * random_normal(&random));
            for (size_t j = i; j < i + OF_ROUND; j++)
                timing.samples[j] =
                    (struct sample){.round = i / OF_ROUND,
                                    .a_ns = 1e6 * a * exp(0.002 * random_normal(&random)),
                                    .b_ns = 1e6 * b * exp(0.002 * random_normal(&random))};
        }
        timing_results(&timing);
        held += timing.ratio.low <= 1.0 && timing.ratio.high >= 1.0;
        assert_int_equal(timing.ratio.processes, ROUNDS);
    }
    assert_true(held * 100 >= 93 * RUNS && held * 100 <= 98 * RUNS);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_waits_for_a_core_is_not_slower, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_device_of_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_process_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_both_are_in_either_process, set_up, tear_down),
        cmocka_unit_test(test_places_cancel_luck),
        cmocka_unit_test(test_rounds_are_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
