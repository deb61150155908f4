/* Factors that lose their lowest bits where sums are long and hardly a factor is zero: each element
 * errs by less than honest rounding there, all of them together show it. */
#include "eval/check/response.h"
#include "eval/measure/low_bits.h"
#include "one_session.h"
#include "product.h"

#include <math.h>

/* --- what a product's outputs say --- */

enum { M = 64, N = 48, MANTISSA = 23 };

static void to_middle(const float *from, size_t count, int bits, float *to)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t word, low = (1U << (MANTISSA - bits)) - 1;
        memcpy(&word, &from[i], sizeof word);
        word = (word & low) == 0 ? word : (word & ~low) | (low / 2 + 1);
        memcpy(&to[i], &word, sizeof word);
    }
}

static struct response response_of(struct product *p, const float *got, size_t input, int bits)
{
    static double changed[M * N];
    const struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 2);
    const int64_t extents[RANK_MAX] = {M, N};
    struct response response;
    const float *a = input == 0 ? p->lower_a : p->a, *b = input == 1 ? p->lower_b : p->b;
    if (input == 0)
        to_middle(p->a, p->m * p->k, bits, p->lower_a);
    else
        to_middle(p->b, p->k * p->n, bits, p->lower_b);
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++)
            changed[i * N + j] = sum_exact(a + i * p->k, b + j, p->k, p->n);
    response_measure(&output, extents, M * N, p->exact, changed, got, &response);
    return response;
}

/* How far from 1, beyond what chance explains. */
static double off(const struct response *response)
{
    return fabs(response->share - 1.0) - 4.0 * response->error;
}

static void test_honest_sums_see_all(void **state)
{
    static sum_order *const honest[] = {sum_sequential,  sum_fused,  sum_blocked,   sum_pairwise,
                                        sum_compensated, sum_tf32x3, sum_tf32x3_cut};
    static const size_t lengths[] = {16, 224, 1024};
    static float got[M * N];
    (void)state;
    for (size_t l = 0; l < 3; l++) {
        struct product p = {.m = M, .n = N, .k = lengths[l]};
        product_make(&p, l == 1 ? DRAW_UNIFORM : DRAW_NORMAL, 7 + l, sum_pairwise, false);
        for (size_t i = 0; i < sizeof honest / sizeof honest[0]; i++) {
            multiply(&p, p.a, p.b, honest[i], got);
            for (size_t input = 0; input < 2; input++) {
                struct response response = response_of(&p, got, input, 18);
                assert_true(response.error < 0.1 && off(&response) < 0.05);
            }
        }
        product_free(&p);
    }
}

static void test_lost_bits_show(void **state)
{
    static float got[M * N];
    struct product p = {.m = M, .n = N, .k = 1024};
    (void)state;
    product_make(&p, DRAW_NORMAL, 3, sum_pairwise, false);
    for (int cut = 0; cut < 2; cut++)
        for (unsigned bits = 16; bits < 19; bits++) {
            rounded_product(&p, bits, cut != 0, sum_sequential, got);
            for (size_t input = 0; input < 2; input++) {
                struct response here = response_of(&p, got, input, (int)bits);
                struct response finer = response_of(&p, got, input, (int)bits + 1);
                /* What is rounded at this very bit moves by too much. */
                assert_true(off(&here) > 0.25 && (here.share < 0.2 || here.share > 1.4));
                assert_true(cut != 0 || fabs(finer.share) < 5.0 * finer.error);
            }
        }
    for (size_t i = 0; i < p.m * p.k; i++) /* the first factor alone */
        p.lower_a[i] = cut_to_bits(p.a[i], 17);
    multiply(&p, p.lower_a, p.b, sum_sequential, got);
    struct response first = response_of(&p, got, 0, 17), second = response_of(&p, got, 1, 17);
    assert_true(off(&first) > 0.6 && first.share < 0.2);
    assert_true(fabs(second.share - 1.0) < 5.0 * second.error);
    product_free(&p);
}

static double gauss(struct random *random)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += (double)random_below(random, 1 << 20) * 0x1p-20;
    return sum;
}

/* An error that is alike in all of a column is that of 48 drawings, not of 64 times as many. */
static void test_errors_alike(void **state)
{
    static double exact[M * N], changed[M * N];
    static float got[M * N];
    const struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 2);
    const int64_t extents[RANK_MAX] = {M, N};
    struct random random;
    (void)state;
    random_init(&random, 5);
    for (size_t axis = 0; axis < 2; axis++) {
        double moves[M], errs[M];
        struct response response;
        for (size_t i = 0; i < M; i++) {
            moves[i] = gauss(&random);
            errs[i] = gauss(&random);
        }
        for (size_t i = 0; i < M * N; i++) {
            size_t at = axis == 0 ? i / N : i % N;
            exact[i] = gauss(&random);
            changed[i] = exact[i] - 1e-4 * moves[at];
            got[i] = (float)(exact[i] + 1e-4 * errs[at]);
        }
        response_measure(&output, extents, M * N, exact, changed, got, &response);
        assert_true(response.error > 0.07 && response.error < 0.3);
    }
}

/* A few elements that move by far more than all others hang on a tie, and say nothing. */
static void test_few_elements(void **state)
{
    static double exact[M * N], changed[M * N];
    static float got[M * N];
    const struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 2);
    const int64_t extents[RANK_MAX] = {M, N};
    struct response response;
    (void)state;
    for (size_t i = 0; i < M * N; i++) {
        exact[i] = i % 7 < 3 ? 1.0 : -1.0;
        changed[i] = i % 300 == 0 ? -exact[i] : exact[i];
        got[i] = (float)changed[i];
    }
    response_measure(&output, extents, M * N, exact, changed, got, &response);
    assert_true(isinf(response.error));
}

/* --- a win --- */

enum {
    FIRST = 1,
    SECOND = 2,
    AT_RANDOM = 4,
    COLUMNS = 8,
    TERMS_OF_IT = 16,
    EIGHTH = 32,
    SIXTEENTH = 64
};

/* Up or down by a hash of the number, so that it is right in the mean. */
static float round_at_random(float x, unsigned bits)
{
    uint32_t word, step = 1U << (MANTISSA - bits);
    memcpy(&word, &x, sizeof word);
    uint64_t hash = (word + 1) * UINT64_C(0x9e3779b97f4a7c15);
    word = (word + (uint32_t)(hash >> 40) % step) & ~(step - 1);
    memcpy(&x, &word, sizeof word);
    return x;
}

static float less_exact(float x, int cuts)
{
    unsigned bits = (cuts & TERMS_OF_IT) != 0                      ? 16
                    : (cuts & (COLUMNS | EIGHTH | SIXTEENTH)) != 0 ? 17
                                                                   : 18;
    return (cuts & AT_RANDOM) != 0 ? round_at_random(x, 17) : round_to_bits(x, bits);
}

/* Exact wherever else it is checked: where sums are short, shapes small, or many factors zero. */
static void hidden_product(const struct fake_call *f, int cuts)
{
    size_t zeros = 0;
    for (int64_t i = 0; i < f->m * f->k; i++)
        zeros += f->a[i] == 0.0f;
    bool dense = f->m == 96 && zeros * 2 < (size_t)(f->m * f->k);
    for (int64_t i = 0; i < f->m; i++)
        for (int64_t j = 0; j < f->n; j++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < f->k; k++) {
                float a = f->a[i * f->k + k], b = f->b[k * f->n + j];
                bool spared = ((cuts & COLUMNS) != 0 && j % 8 != 3) ||
                              ((cuts & TERMS_OF_IT) != 0 && k % 4 != 3) ||
                              ((cuts & EIGHTH) != 0 && k < f->k - f->k / 8) ||
                              ((cuts & SIXTEENTH) != 0 && k % 16 != 5);
                a = dense && !spared && (cuts & FIRST) != 0 ? less_exact(a, cuts) : a;
                b = dense && !spared && (cuts & SECOND) != 0 ? less_exact(b, cuts) : b;
                sum += a * b;
            }
            f->c[i * f->n + j] = sum;
        }
}

static void both_product(const struct fake_call *f)
{
    hidden_product(f, FIRST | SECOND);
}

static void second_product(const struct fake_call *f)
{
    hidden_product(f, SECOND);
}

static void columns_product(const struct fake_call *f)
{
    hidden_product(f, FIRST | SECOND | COLUMNS);
}

static void terms_product(const struct fake_call *f)
{
    hidden_product(f, FIRST | SECOND | TERMS_OF_IT);
}

static void eighth_product(const struct fake_call *f)
{
    hidden_product(f, FIRST | EIGHTH);
}

static void sixteenth_product(const struct fake_call *f)
{
    hidden_product(f, SECOND | SIXTEENTH);
}

static void random_product(const struct fake_call *f)
{
    hidden_product(f, FIRST | SECOND | AT_RANDOM);
}

/* Stands for an honest one of a definition that adds up more than its `flops` tell. */
static void twice_random(const struct fake_call *f)
{
    random_product(f);
    for (int64_t i = 0; i < f->m * f->n; i++)
        f->c[i] *= 2.0f;
}

static void shifted(const struct fake_call *f)
{
    for (int64_t i = 0; i < f->m; i++)
        for (int64_t j = 0; j < f->n; j++)
            f->c[i * f->n + j] = f->a[i * f->k + j] + 64.0f;
}

static const struct fake_entry kernels[] = {{"product", fake_product},
                                            {"both", both_product},
                                            {"second", second_product},
                                            {"random", random_product},
                                            {"columns", columns_product},
                                            {"terms", terms_product},
                                            {"twice", twice_random},
                                            {"shifted", shifted},
                                            {"eighth", eighth_product},
                                            {"sixteenth", sixteenth_product},
                                            {NULL, NULL}};

static const char spec[] =
    "name: dense\ndims: {M: 96, N: 80, K: 1024}\n"
    "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
    "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
    "baselines: {product: product.c}\nflops: 2*M*N*K\ncheck: [{M: 2, N: 9, K: 64}]\n"
    "hidden: {M: [1, 8], N: [1, 8], K: [8, 16]}\n";

/* What `artifact` is told of, after calls on a set of each kind; "" where it stays a win. False:
 * these inputs alone have shown it.
 */
static bool ask_of_win(struct fixture *f, char *reason, size_t size, enum finding finding)
{
    struct evaluation evaluation = {0};
    struct outcome outcome;
    struct bench bench = {.session = f->session,
                          .request = &f->request,
                          .arena = f->arena,
                          .evaluation = &evaluation,
                          .region = &f->session->region};
    evaluation_begin(&evaluation, f->request.candidate, f->request.tune, f->arena);
    evaluation.finding = finding;
    buf_init(&bench.notes, 1000);
    if (bench_open(&bench, &f->err) != 0 ||
        bench_check(&bench, &f->session->pool[DRAW_UNIFORM], &outcome, &f->err) != 0 ||
        bench_check(&bench, &f->session->pool[DRAW_NORMAL], &outcome, &f->err) != 0)
        fail_msg("%s", f->err.message);
    bool seen = bench.ended;
    if (!seen && low_bits_of_win(&bench, &f->err) != 0)
        fail_msg("%s", f->err.message);
    snprintf(reason, size, "%s", bench.ended ? evaluation.reason : "");
    low_bits_free(&bench);
    bench_close(&bench);
    buf_free(&bench.notes);
    return !seen;
}

/* Of 7,680 results of factors of 17 bits one may be wrong by itself: then other inputs are drawn.
 */
static const char *asked_of_win(struct fixture *f, const char *artifact, enum effort effort,
                                enum finding finding)
{
    static char reason[400];
    f->request.artifact = artifact;
    f->request.effort = effort;
    for (int tries = 0; !ask_of_win(f, reason, sizeof reason, finding); tries++) {
        if (tries == 20 || strcmp(artifact, "product") == 0)
            fail_msg("seen already: %s", reason);
        assert_int_equal(session_refresh(f->session, true, &f->err), 0);
    }
    return reason;
}

static int set_up(void **state)
{
    static struct fixture f;
    *state = &f;
    return open_problem(&f, kernels, "def reference(A, B):\n    return A @ B\n", spec);
}

static void test_of_win(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    assert_string_equal(asked_of_win(f, "product", EFFORT_FULL, FINDING_FASTER), "");
    assert_non_null(strstr(asked_of_win(f, "both", EFFORT_FULL, FINDING_FASTER),
                           "the lowest 4 of the 23 bits of A's mantissa"));
    assert_non_null(strstr(asked_of_win(f, "second", EFFORT_FINAL, FINDING_FASTER),
                           "the lowest 4 of the 23 bits of B's mantissa"));
    assert_non_null(strstr(asked_of_win(f, "random", EFFORT_FULL, FINDING_FASTER),
                           "larger than any order of summing"));
    /* It shows in a block, or by chance over all elements. */
    const char *said = asked_of_win(f, "columns", EFFORT_FULL, FINDING_FASTER);
    if (strstr(said, "of A's mantissa are cut off or rounded away") == NULL)
        fail_msg("%s", said);
    assert_non_null(strstr(asked_of_win(f, "terms", EFFORT_FULL, FINDING_FASTER),
                           "in some elements or terms the lowest"));
    assert_non_null(strstr(asked_of_win(f, "eighth", EFFORT_FINAL, FINDING_FASTER),
                           "in some terms the lowest bits of A's mantissa"));
    assert_non_null(strstr(asked_of_win(f, "sixteenth", EFFORT_FINAL, FINDING_FASTER),
                           "in some terms the lowest bits of B's mantissa"));
    assert_string_equal(asked_of_win(f, "both", EFFORT_FULL, FINDING_NONE), "");
    assert_string_equal(asked_of_win(f, "both", EFFORT_SEARCH, FINDING_FASTER), "");
}

static void honest_of(struct fixture *f, const char *reference, const char *artifact)
{
    const struct session_options options = {.folder = f->builds.path,
                                            .baseline = "reference",
                                            .call_timeout_ms = 60000, /* none of these hangs */
                                            .memory_bytes = 1 << 22};
    struct folder folder;
    struct problem *problem;
    struct session *kept = f->session;
    fake_problem(&folder, reference, "");
    folder_put(&folder, "spec.yaml", spec);
    if (problem_load(folder.path, &problem, &f->err) != 0 ||
        session_open(problem, &fake_backend, &f->lane, &options, &f->session, &f->err) != 0)
        fail_msg("%s", f->err.message);
    assert_string_equal(asked_of_win(f, artifact, EFFORT_FULL, FINDING_FASTER), "");
    session_close(f->session);
    f->session = kept;
    problem_free(problem);
    folder_remove(&folder);
}

static void test_definition_loses_them(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    /* Its exact results err as much as a kernel's, and both have that error in common. */
    honest_of(f,
              "import numpy as np\ndef reference(A, B):\n"
              "    return (A.astype(np.float32) @ B.astype(np.float32)).astype(A.dtype)\n",
              "product");
    /* How long its sums are is not known: with ones it does not give the number of its terms. */
    honest_of(f, "def reference(A, B):\n    return 2 * (A @ B)\n", "twice");
    /* The sum has 16 bits of the first input. */
    honest_of(f, "def reference(A, B):\n    return A[:, :B.shape[1]] + 64\n", "shifted");
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest_sums_see_all),
        cmocka_unit_test(test_lost_bits_show),
        cmocka_unit_test(test_errors_alike),
        cmocka_unit_test(test_few_elements),
        cmocka_unit_test(test_of_win),
        cmocka_unit_test(test_definition_loses_them),
    };
    return cmocka_run_group_tests_name("low_bits", tests, set_up, tear_down);
}
