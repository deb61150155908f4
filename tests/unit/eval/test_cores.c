/* An adapter that computes on the lane's cores has a clock of its own, which others there slow. */
#include "one_session.h"

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

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_waits_for_a_core_is_not_slower, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_device_of_its_own, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
