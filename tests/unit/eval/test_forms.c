/* Shapes for which kernels have ways of their own, and which of them a candidate is asked about.
 * Kernels that are wrong at one of them alone are in test_large.c. */
#include "eval/sets/large.h"
#include "one_session.h"

static const struct fake_entry kernels[] = {{"product", fake_product}, {NULL, NULL}};

static const char product_spec[] =
    "name: large\ndims: {M: 48, N: 64, K: 40}\n"
    "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
    "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
    "baselines: {product: product.c}\nflops: 2*M*N*K\ncheck: [{M: 1, N: 9, K: 2}]\n"
    "hidden: {M: [1, 20], N: [1, 20], K: [1, 20]}\n";

static int set_up(void **state)
{
    static struct fixture f;
    *state = &f;
    return open_problem(&f, kernels, "def reference(A, B):\n    return A @ B\n", product_spec);
}

/* Those for which kernels have ways of their own: of the timed shape's work at most, or little. */
static void test_forms(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct problem *problem = f->problem;
    const int64_t *timed = problem->shapes[0].number;
    bool odd_tiles = false, even_tiles = false;
    assert_int_equal(problem_form_sizes(problem, 0), 7);
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct names dims;
        size_t at = seed % 3, fewer = 0, other = 0;
        assert_true(problem_draw_form(problem, seed, FORM_TILES, 0, 0, 1.75, &dims));
        for (size_t i = 0; i < 3; i++) {
            assert_true(dims.number[i] >= timed[i] && dims.number[i] % 32 == 0);
            other += dims.number[i] != timed[i];
        }
        assert_true(other > 0);
        odd_tiles = odd_tiles || dims.number[0] % 64 != 0;
        even_tiles = even_tiles || dims.number[0] % 64 == 0;
        assert_true(problem_draw_form(problem, seed, FORM_LESS, 0, 0, 1.75, &dims));
        for (size_t i = 0; i < 3; i++) {
            assert_true(dims.number[i] >= timed[i] / 2 && dims.number[i] <= timed[i]);
            fewer += dims.number[i] < timed[i];
        }
        assert_true(fewer > 0);
        assert_true(problem_draw_form(problem, seed, FORM_FEW, at, 0, 1.75, &dims));
        for (size_t i = 0; i < 3; i++)
            assert_true(i == at ? dims.number[i] >= 2 && dims.number[i] < 16
                                : dims.number[i] >= timed[i]);
        assert_true(problem_draw_form(problem, seed, FORM_ONE, at, 0, 1.75, &dims));
        for (size_t i = 0; i < 3; i++)
            assert_true(i == at ? dims.number[i] == 1 : dims.number[i] >= timed[i]);
    }
    assert_true(odd_tiles && even_tiles);
}

/* Where inputs are large each candidate is asked some of them, a champion all. */
static void test_forms_take_turns(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    unsigned asked = 0;
    session_begin_large(session, false);
    assert_int_equal(session->forms_asked, 0xff);
    session->shapes[0].elements <<= 20;
    for (int i = 0; i < 100; i++) {
        session_begin_large(session, false);
        assert_int_equal(__builtin_popcount(session->forms_asked), 3);
        assert_true((session->forms_asked & 1) != 0 && (session->forms_asked & 0xe0) != 0);
        asked |= session->forms_asked;
    }
    assert_int_equal(asked, 0xff);
    session_begin_large(session, true);
    assert_int_equal(session->forms_asked, 0xff);
    session->shapes[0].elements >>= 20;
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_forms, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_forms_take_turns, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
