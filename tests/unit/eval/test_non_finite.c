/* What is asked of a kernel where inputs are NaN or infinite: of definitions that settle it, that
 * leave it open, and that sum products. */
#include "eval/measure/session.h"
#include "eval/sets/non_finite.h"
#include "eval/sets/session.h"

#include "fake_backend.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

struct asked {
    struct folder folder, builds;
    struct problem *problem;
    struct session *session;
    struct arena *arena;
    struct set *set; /* NULL: nothing is asked */
    struct err err;
};

#define ONE                                                                                        \
    "name: one\ndims: {M: 24, N: 40}\ninputs: {X: {shape: [M, N], dtype: float32}}\n"              \
    "outputs: {Y: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"                      \
    "check: [{M: 9, N: 33}]\n"
#define TWO                                                                                        \
    "name: two\ndims: {M: 24, N: 40, K: 30}\n"                                                     \
    "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"           \
    "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\nflops: 2*M*N*K\n"      \
    "check: [{M: 9, N: 33, K: 20}]\n"

static void ask(struct asked *asked, const char *spec, const char *reference)
{
    int core = 0;
    struct lane_facts lane;
    *asked = (struct asked){.arena = arena_new()};
    fake_problem(&asked->folder, reference, "");
    folder_put(&asked->folder, "spec.yaml", spec);
    folder_make(&asked->builds);
    struct session_options options = {.folder = asked->builds.path, .memory_bytes = 1 << 20};
    if (problem_load(asked->folder.path, &asked->problem, &asked->err) != 0)
        fail_msg("%s", asked->err.message);
    assert_int_equal(fake_probe(&core, 1, false, asked->arena, &lane, &asked->err), 0);
    if (session_open(asked->problem, &fake_backend, &lane, &options, &asked->session,
                     &asked->err) != 0)
        fail_msg("%s", asked->err.message);
    for (size_t i = 0; i < asked->session->case_count; i++)
        if (asked->session->cases[i].distribution == DRAW_NON_FINITE)
            asked->set = &asked->session->cases[i];
    if (asked->set != NULL && set_expect(asked->session, asked->set, &asked->err) != 0)
        fail_msg("%s", asked->err.message);
}

static void end(struct asked *asked)
{
    session_close(asked->session);
    problem_free(asked->problem);
    folder_remove(&asked->folder);
    folder_remove(&asked->builds);
    arena_free(asked->arena);
}

static const float *input_of(const struct asked *asked, size_t *count)
{
    *count = asked->set->shape->layout.inputs[0].elements;
    return (const float *)(const void *)asked->set->inputs[0];
}

static bool is_plain(double exact)
{
    return !check_is_anything(exact) && !check_is_not_finite(exact);
}

static void test_a_rectifier_keeps_each_class(void **state)
{
    (void)state;
    struct asked asked;
    size_t count, kinds[3] = {0};
    ask(&asked, ONE, "import numpy as np\ndef reference(X): return np.maximum(X, 0)\n");
    assert_non_null(asked.set);
    assert_false(asked.set->unfit);
    const float *x = input_of(&asked, &count);
    for (size_t i = 0; i < count; i++) {
        double exact = asked.set->exact[0][i];
        assert_true(is_plain(exact));
        kinds[0] += isnan(x[i]) && isnan(exact);
        kinds[1] += isinf(x[i]) && x[i] > 0.0f && isinf(exact) && exact > 0.0;
        kinds[2] += isinf(x[i]) && x[i] < 0.0f && fabs(exact) <= 0.0;
        if (isfinite(x[i]))
            assert_true(fabs(exact - fmax((double)x[i], 0.0)) <= 0.0);
    }
    assert_true(kinds[0] > 0 && kinds[1] > 0 && kinds[2] > 0);
    end(&asked);
}

/* A kernel need not read what is multiplied by zero; what is selected is asked. */
static void test_behind_a_mask(void **state)
{
    (void)state;
    static const char *const references[] = {
        "import numpy as np\ndef reference(X): return X * np.tril(np.ones_like(X))\n",
        "import numpy as np\ndef reference(X): return np.where(np.tril(np.ones(X.shape)) > 0, X, "
        "X.dtype.type(0))\n"};
    for (size_t k = 0; k < 2; k++) {
        struct asked asked;
        size_t count, columns, behind = 0;
        ask(&asked, ONE "non_finite: propagate\n", references[k]);
        columns = (size_t)asked.set->shape->layout.inputs[0].extents[1];
        for (size_t turn = 0; turn < 8; turn++) {
            const float *x = input_of(&asked, &count);
            for (size_t i = 0; i < count; i++) {
                double exact = asked.set->exact[0][i];
                bool masked = i % columns > i / columns;
                behind += masked && !isfinite(x[i]);
                if (masked && !isfinite(x[i]))
                    assert_true(k == 0 ? check_is_anything(exact) : fabs(exact) <= 0.0);
                else if (!masked && isnan(x[i]))
                    assert_true(isnan(exact) && is_plain(exact));
            }
            set_redraw(asked.set);
            assert_int_equal(set_expect(asked.session, asked.set, &asked.err), 0);
        }
        assert_true(behind > 0);
        end(&asked);
    }
}

/* A NaN that infinities make is an accident; one that was there is not; -inf has weight 0. */
static void test_a_softmax(void **state)
{
    (void)state;
    struct asked asked;
    size_t count, rows[3] = {0};
    ask(&asked, ONE,
        "import numpy as np\ndef reference(X):\n    e = np.exp(X - X.max(axis=1, keepdims=True))\n"
        "    return e / e.sum(axis=1, keepdims=True)\n");
    const float *x = input_of(&asked, &count);
    size_t n = (size_t)asked.set->shape->layout.inputs[0].extents[1];
    for (size_t row = 0; row < count; row += n) {
        bool nan = false, infinite = false, masked = false;
        for (size_t i = row; i < row + n; i++) {
            nan = nan || isnan(x[i]);
            infinite = infinite || (isinf(x[i]) && x[i] > 0.0f);
            masked = masked || (isinf(x[i]) && x[i] < 0.0f);
        }
        for (size_t i = row; i < row + n; i++) {
            double exact = asked.set->exact[0][i];
            if (nan)
                assert_true(infinite || (isnan(exact) && is_plain(exact)));
            else if (infinite)
                assert_true(check_is_anything(exact));
            else
                assert_true(isfinite(exact));
        }
        rows[0] += nan;
        rows[1] += infinite;
        rows[2] += masked && !nan && !infinite;
    }
    assert_true(rows[0] > 0 && rows[1] > 0 && rows[2] > 0);
    end(&asked);
}

/* Split factors and Strassen's sums make a NaN of an infinity, beside it as well. */
static void test_sums_of_products(void **state)
{
    (void)state;
    for (int propagate = 0; propagate < 2; propagate++) {
        struct asked asked;
        size_t any = 0, not_finite = 0, plain = 0;
        ask(&asked, propagate ? TWO "non_finite: propagate\n" : TWO,
            "def reference(A, B): return A @ B\n");
        assert_false(asked.set->unfit);
        for (size_t i = 0; i < asked.set->shape->layout.outputs[0].elements; i++) {
            double exact = asked.set->exact[0][i];
            any += check_is_anything(exact);
            not_finite += check_is_not_finite(exact);
            plain += is_plain(exact);
        }
        assert_true(propagate ? plain > 0 && not_finite == 0 : plain == 0 && not_finite > 0);
        assert_true(propagate || any > 0);
        end(&asked);
    }
}

static void test_where_nothing_is_asked(void **state)
{
    (void)state;
    static const char relu[] = "import numpy as np\ndef reference(X): return np.maximum(X, 0)\n";
    static const char raises[] = "import numpy as np\ndef reference(X):\n"
                                 "    if np.isnan(X).any(): raise ValueError('NaN')\n"
                                 "    return np.maximum(X, 0)\n";
    static const char ranged[] =
        "name: one\ndims: {M: 24, N: 40}\n"
        "inputs: {X: {shape: [M, N], dtype: float32, range: [-5, 5]}}\n"
        "outputs: {Y: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
        "check: [{M: 9, N: 33}]\n%s";
    struct asked asked;
    char spec[512];
    ask(&asked, ONE "non_finite: ignore\n", relu);
    assert_null(asked.set);
    end(&asked);
    ask(&asked, ONE "accuracy: normwise\n", relu);
    assert_null(asked.set);
    end(&asked);
    snprintf(spec, sizeof spec, ranged, "");
    ask(&asked, spec, relu);
    assert_null(asked.set);
    end(&asked);
    snprintf(spec, sizeof spec, ranged, "non_finite: propagate\n");
    ask(&asked, spec, relu);
    assert_non_null(asked.set);
    assert_false(asked.set->unfit);
    end(&asked);
    ask(&asked, ONE, raises);
    assert_true(asked.set->unfit);
    end(&asked);
}

static void test_marks(void **state)
{
    (void)state;
    static const float got[] = {NAN, INFINITY, -INFINITY, 1.0f};
    static const bool right[][4] = {{true, true, true, true}, {true, true, true, false}};
    const struct tensor_spec output = {.name = "y", .dtype = DTYPE_FLOAT32, .rank = 1};
    const int64_t extents[RANK_MAX] = {4, 1, 1, 1, 1, 1, 1, 1};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < 4; i++) {
            double exact[4] = {1.0, 1.0, 1.0, 1.0};
            float all[4] = {1.0f, 1.0f, 1.0f, 1.0f};
            struct bound bound = {.element = 1e-6, .norm = 1e-6};
            struct mismatch mismatch;
            exact[i] = k == 0 ? check_anything() : check_not_finite();
            all[i] = got[i];
            check_output(&output, extents, 4, &bound, exact, all, &mismatch);
            assert_int_equal(mismatch.passed, right[k][i]);
        }
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_rectifier_keeps_each_class),
                                       cmocka_unit_test(test_behind_a_mask),
                                       cmocka_unit_test(test_a_softmax),
                                       cmocka_unit_test(test_sums_of_products),
                                       cmocka_unit_test(test_where_nothing_is_asked),
                                       cmocka_unit_test(test_marks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
