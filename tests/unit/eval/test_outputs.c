/* A problem with two outputs: each counts, not the first alone. */
#include "one_session.h"

static float *second_output(const struct fake_call *f)
{
    return f->c + (f->call->offsets[3] - f->call->offsets[2]) / sizeof(float);
}

/* The product, and what it is with the other sign. */
static void both(const struct fake_call *f)
{
    float *d = second_output(f);
    fake_product(f);
    for (int64_t i = 0; i < f->m * f->n; i++)
        d[i] = -f->c[i];
}

static void second_wrong(const struct fake_call *f)
{
    both(f);
    second_output(f)[0] += 1.0f;
}

static const struct fake_entry kernels[] = {
    {"product", both}, {"second_wrong", second_wrong}, {NULL, NULL}};

static int set_up(void **state)
{
    static struct fixture fixture;
    *state = &fixture;
    return open_problem(
        &fixture, kernels, "def reference(A, B):\n    return A @ B, -(A @ B)\n",
        "name: two\ndims: {M: 24, N: 20, K: 28}\n"
        "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
        "outputs: {C: {shape: [M, N], dtype: float32}, D: {shape: [M, N], dtype: float32}}\n"
        "reference: ref_impl.py\nbaselines: {product: product.c}\nflops: 2*M*N*K\n"
        "check: [{M: 1, N: 1, K: 1}, {M: 13, N: 7, K: 5}]\n");
}

static void test_the_second_counts(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct evaluation evaluation = {0};
    measure(f, EFFORT_SEARCH);
    f->request.artifact = "second_wrong";
    assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err), 0);
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    assert_non_null(strstr(evaluation.reason, "wrong result: D"));
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_second_counts)};
    return cmocka_run_group_tests_name("outputs", tests, set_up, tear_down);
}
