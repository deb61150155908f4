/* What is done where a kernel is nearly too inexact, where a tie decides, and where the definition
 * itself fails the spec's tolerance. */
#include "eval/measure/accuracy.h"
#include "eval/measure/low_bits.h"
#include "eval/sets/excuse.h"
#include "one_session.h"
#include "sums.h"

#include <math.h>

/* Errs by `size` at the main shape, by how much there is allowed. */
static void inexact_product(const struct fake_call *f, float size)
{
    fake_product(f);
    for (int64_t i = 0; i < f->m * f->n && f->m == 24 && f->n == 20 && f->k == 28; i++)
        f->c[i] *= 1.0f + size * 0x1p-23f;
}

static void nearly_product(const struct fake_call *f)
{
    inexact_product(f, 13.0f); /* less than twice of what is allowed */
}

static void flicker_product(const struct fake_call *f)
{
    static unsigned calls;
    inexact_product(f, f->m == 24 && f->n == 20 && f->k == 28 && calls++ % 5 == 0 ? 13.0f : 0.0f);
}

/* Factors of 18 bits where it is timed, float32 wherever else it is checked. */
static void narrow_product(const struct fake_call *f)
{
    bool timed = f->m == 300 && f->n == 300;
    for (int64_t i = 0; i < f->m; i++)
        for (int64_t j = 0; j < f->n; j++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < f->k; k++)
                sum += timed ? round_to_bits(f->a[i * f->k + k], 18) *
                                   round_to_bits(f->b[k * f->n + j], 18)
                             : f->a[i * f->k + k] * f->b[k * f->n + j];
            f->c[i * f->n + j] = sum;
        }
}

static const struct fake_entry kernels[] = {{"product", fake_product},
                                            {"narrow", narrow_product},
                                            {"nearly", nearly_product},
                                            {"flicker", flicker_product},
                                            {NULL, NULL}};

static int set_up(void **state)
{
    static struct fixture f;
    *state = &f;
    return open_product(&f, kernels);
}

/* What is nearly too inexact gets its verdict from more than one drawing. */
static void test_doubt(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct evaluation evaluation = {0};
    for (int i = 0; i < 4; i++) {
        f->request.artifact = "flicker";
        measure(f, EFFORT_FULL);
        f->request.artifact = "nearly";
        assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err),
                         0);
        assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
        assert_non_null(strstr(evaluation.details, "drawn again: too inexact on"));
        assert_non_null(strstr(evaluation.metrics, "\"of_allowed\":1."));
    }
    f->request.artifact = "product";
}

/* Inputs on which the definition itself fails the spec's tolerance do not count. */
static void test_tolerance_that_the_definition_fails(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct session_options options = {
        .folder = f->builds.path, .baseline = "product", .memory_bytes = 1 << 20};
    struct folder folder;
    struct problem *problem;
    struct session *session, *kept = f->session;
    struct evaluation evaluation = {0};
    fake_problem(&folder, "def reference(A, B):\n    return A @ B\n",
                 "tolerance: {rtol: 1e-9, atol: 4e-5}\n");
    assert_int_equal(problem_load(folder.path, &problem, &f->err), 0);
    assert_int_equal(session_open(problem, &fake_backend, &f->lane, &options, &session, &f->err),
                     0);
    f->session = session;
    if (session_measure(session, &f->request, f->arena, &evaluation, &f->err) != 0)
        fail_msg("%s", f->err.message);
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_true((session->beside >> DRAW_HEAVY & 1) != 0);
    assert_true((session->beside >> DRAW_UNIFORM & 1) == 0);
    assert_non_null(strstr(evaluation.metrics, "heavy inputs do not count"));
    f->session = kept;
    session_close(session);
    problem_free(problem);
    folder_remove(&folder);
}

/* Sums of few terms are asked of a win at the main shape as well. */
static void test_precision_where_it_is_timed(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct session_options options = {
        .folder = f->builds.path, .baseline = "reference", .memory_bytes = 1 << 24};
    struct folder folder;
    struct problem *problem;
    struct evaluation evaluation = {0};
    struct outcome outcome;
    fake_problem(&folder, "def reference(A, B):\n    return A @ B\n", "");
    folder_put(&folder, "spec.yaml",
               "name: large\ndims: {M: 300, N: 300, K: 1024}\n"
               "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
               "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
               "flops: 2*M*N*K\ncheck: [{M: 2, N: 9, K: 64}]\n"
               "hidden: {M: [1, 8], N: [1, 8], K: [1, 8]}\n");
    assert_int_equal(problem_load(folder.path, &problem, &f->err), 0);
    struct session *session;
    struct measure_request request = f->request;
    request.effort = EFFORT_FULL;
    if (session_open(problem, &fake_backend, &f->lane, &options, &session, &f->err) != 0)
        fail_msg("%s", f->err.message);
    assert_true(session->long_shape != &session->shapes[0]);
    for (int i = 0; i < 4; i++) {
        bool win = i < 2, honest = i % 2 != 0;
        request.artifact = honest ? "product" : "narrow";
        struct bench bench = {.session = session,
                              .request = &request,
                              .arena = f->arena,
                              .evaluation = &evaluation,
                              .region = &session->region};
        evaluation_begin(&evaluation, request.candidate, request.tune, f->arena);
        evaluation.finding = win ? FINDING_FASTER : FINDING_NONE;
        buf_init(&bench.notes, 1000);
        if (bench_open(&bench, &f->err) != 0 ||
            bench_check(&bench, &session->pool[0], &outcome, &f->err) != 0)
            fail_msg("%s", f->err.message);
        if (bench.ended)
            fail_msg("seen already: %s", evaluation.reason);
        if (accuracy_of_win(&bench, &f->err) != 0)
            fail_msg("%s", f->err.message);
        assert_int_equal(bench.ended, win && !honest);
        set_free(&bench.few);
        low_bits_free(&bench);
        bench_close(&bench);
        buf_free(&bench.notes);
    }
    session_close(session);
    problem_free(problem);
    folder_remove(&folder);
}

/* Rows that hang on a tie are excused, where what is there is a number; others are not. */
static void test_ties(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct session_options options = {
        .folder = f->builds.path, .baseline = "reference", .memory_bytes = 1 << 20};
    struct folder folder;
    struct problem *problem;
    struct session *session;
    float got[24 * 20];
    bool excused = false;
    fake_problem(&folder,
                 "import numpy as np\ndef reference(A, B):\n"
                 "    return np.where(A @ B > 0, A.dtype.type(1), A.dtype.type(-1))\n",
                 "");
    assert_int_equal(problem_load(folder.path, &problem, &f->err), 0);
    assert_int_equal(session_open(problem, &fake_backend, &f->lane, &options, &session, &f->err),
                     0);
    struct set *set = &session->pool[1];
    set_draw(session, set);
    float *a = (float *)(void *)set->inputs[0], *b = (float *)(void *)set->inputs[1];
    for (size_t k = 0; k < 28; k++) { /* the first element's sum is hardly more than 0 */
        a[k] = k % 2 == 0 ? 1.0f + (k == 0 ? 0x1p-22f : 0.0f) : -1.0f;
        b[k * 20] = 1.0f;
    }
    assert_int_equal(set_expect(session, set, &f->err), 0);
    dtype_from_double(DTYPE_FLOAT32, set->exact[0], 480, got);
    got[0] = -got[0];
    for (int i = 0; i < 20 && !excused; i++) /* which way it tips is drawn each time */
        excused = session_excuses(session, set, 0, got);
    assert_true(excused);
    got[0] = NAN;
    assert_false(session_excuses(session, set, 0, got));
    got[0] = 1.0f;
    got[5 * 20 + 3] = -got[5 * 20 + 3];
    assert_false(session_excuses(session, set, 0, got));
    session_close(session);
    problem_free(problem);
    folder_remove(&folder);
}

/* Parameters as large as half a million of rows cannot be had smaller at another shape: fewer sets
 * do, and what a distribution's results may be off by is derived once. */
static void test_large_sets_are_few(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct session_options options = {.folder = f->builds.path, .memory_bytes = 1 << 20};
    struct folder folder;
    struct problem *problem;
    struct session *session;
    size_t count[SHAPES_MOST] = {0};
    fake_problem(&folder, "def reference(A, B):\n    return A * B\n", "");
    folder_put(&folder, "spec.yaml",
               "name: large\ndims: {M: 8, N: 1048576}\n"
               "inputs: {A: {shape: [M, N], dtype: float32}, B: {shape: [N], dtype: float32}}\n"
               "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
               "check: [{M: 2, N: 64}, {M: 3}]\nhidden: {M: [2, 8], N: [1048576, 1048576]}\n");
    assert_int_equal(problem_load(folder.path, &problem, &f->err), 0);
    assert_int_equal(session_open(problem, &fake_backend, &f->lane, &options, &session, &f->err),
                     0);
    assert_true(session_is_large(session));
    for (size_t i = 0; i < session->case_count; i++)
        count[session->cases[i].shape - session->shapes] += i < session->edge_case;
    assert_int_equal(count[1], 3);
    assert_int_equal(count[2], 2);
    assert_int_equal(count[3], 1);
    assert_int_equal(count[4], 1);
    session->known_bounds = f->session->known_bounds = 1;
    assert_int_equal(session_refresh(session, true, &f->err), 0);
    assert_int_equal(session_refresh(f->session, true, &f->err), 0);
    assert_int_equal(session->known_bounds, 1);
    assert_int_equal(f->session->known_bounds, 0);
    session_close(session);
    problem_free(problem);
    folder_remove(&folder);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_sets_are_few),
        cmocka_unit_test(test_doubt),
        cmocka_unit_test(test_precision_where_it_is_timed),
        cmocka_unit_test(test_tolerance_that_the_definition_fails),
        cmocka_unit_test(test_ties),
    };
    return cmocka_run_group_tests_name("accuracy", tests, set_up, tear_down);
}
