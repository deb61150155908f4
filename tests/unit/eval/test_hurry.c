/* Problems whose whole sets there is no time for: samples of them are computed, as where there is
 * no memory, but inputs stay. */
#include "eval/sets/view.h"

enum { M = 900, N = 1000 };

#include "wrong_when_timed.h"

static const char spec[] =
    "name: long\ndims: {M: 900, N: 1000, K: 5}\n"
    "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
    "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
    "baselines: {product: product.c}\nflops: 2*M*N*K\n"
    "check: [{M: 1, N: 9, K: 2}, {M: 16, N: 40, K: 3}]\n"
    "hidden: {M: [1, 20], N: [1, 20], K: [1, 20]}\n";

static int open_within(void **state, uint64_t ms, const char *reference, const char *text)
{
    static struct fixture f;
    *state = &f;
    if (open_problem(&f, kernels, reference, text) != 0)
        return -1;
    struct session_options options = f.session->options;
    session_close(f.session);
    options.within_ms = ms;
    return session_open(f.problem, &fake_backend, &f.lane, &options, &f.session, &f.err);
}

static int set_up(void **state)
{
    return open_within(state, 1, product, spec);
}

/* One set of each distribution, with its inputs; what it gives is known at samples alone. */
static void test_right_ones_are_accepted(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct session *session = f->session;
    assert_true(session->sliced && !session->scarce);
    assert_int_equal(session->slots, SLOTS);
    assert_int_equal(session->pool_count, POOL_LEAST);
    assert_true(session->exact_ns > 0.0); /* by which a call of the definition is planned */
    for (int i = 0; i < 3; i++)
        measure(f, i == 0 ? EFFORT_SEARCH : i == 1 ? EFFORT_FULL : EFFORT_FINAL);
    for (size_t i = 0; i < session->pool_count; i++) {
        assert_int_equal(session->pool[i].view->kind, VIEW_SAMPLED);
        assert_true(session->pool[i].view->small.elements < session->shapes[0].elements / 4);
        /* enough of them for what is asked about a float's lowest bits */
        assert_true(session->pool[i].view->small.layout.outputs[0].elements > 8192);
        assert_non_null(session->pool[i].inputs[0]);
    }
}

static void test_wrong_ones_are_refused(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (size_t i = 1; kernels[i].name != NULL; i++) {
        struct evaluation evaluation = {0};
        f->request.artifact = kernels[i].name;
        f->request.effort = i % 2 == 0 ? EFFORT_SEARCH : EFFORT_FULL;
        assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err),
                         0);
        if (evaluation.verdict != VERDICT_REJECTED)
            fail_msg("%s: %s", kernels[i].name, evaluation.reason);
    }
}

/* Other inputs and other samples with each set that is drawn anew, which no candidate knows. */
static void test_samples_change(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct set *set = &f->session->pool[0];
    uint32_t rows[M];
    assert_int_equal(set_expect(f->session, set, &f->err), 0);
    size_t count = (size_t)set->view->small.dims.number[0];
    uint64_t seed = set->seed;
    memcpy(rows, set->view->maps.of[0], count * sizeof *rows);
    assert_int_equal(set_expect(f->session, set, &f->err), 0);
    assert_true(set->seed == seed && set->inputs[0] != NULL);
    assert_int_equal(session_refresh(f->session, true, &f->err), 0);
    assert_int_equal(set_expect(f->session, set, &f->err), 0);
    assert_true(set->seed != seed);
    assert_memory_not_equal(rows, set->view->maps.of[0], count * sizeof *rows);
}

static void expect_whole(void **state)
{
    const struct session *session = ((struct fixture *)*state)->session;
    assert_false(session->sliced);
    for (size_t i = 0; i < session->pool_count; i++)
        assert_null(session->pool[i].view);
    tear_down(state);
}

/* Where there is time; where nothing can be sliced; where a sample takes as long. */
static void test_whole_sets(void **state)
{
    static const char few[] =
        "name: small\ndims: {M: 90, N: 90, K: 9}\n"
        "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
        "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
        "baselines: {product: product.c}\nflops: 2*M*N*K\n"
        "check: [{M: 1, N: 9, K: 2}, {M: 16, N: 40, K: 3}]\n";
    assert_int_equal(open_within(state, 3600000, product, spec), 0);
    expect_whole(state);
    /* at the small shape where it is asked what can be sliced */
    assert_int_equal(open_within(state, 1,
                                 "def reference(A, B):\n    C = A @ B\n"
                                 "    if len(C) < 12:\n"
                                 "        C = C.cumsum(0).cumsum(1)\n"
                                 "    return C\n",
                                 spec),
                     0);
    expect_whole(state);
    assert_int_equal(open_within(state, 1, product, few), 0);
    expect_whole(state);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_right_ones_are_accepted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_ones_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_samples_change, set_up, tear_down),
        cmocka_unit_test(test_whole_sets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
