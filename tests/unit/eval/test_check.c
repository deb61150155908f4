/* A check that an honest kernel fails is as broken as one that a cheat passes: both sides, over
 * seeds, distributions and sizes. */
#include "eval/check/check.h"

#include "product.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static sum_order *const orders[] = {sum_sequential, sum_backwards, sum_blocked,
                                    sum_pairwise,   sum_4_lanes,   sum_64_lanes};
enum { ORDERS = sizeof orders / sizeof orders[0] };

static void every_order_passes(struct product *p, enum distribution distribution, uint64_t seed,
                               bool ones_b)
{
    char what[128];
    float *got = (float *)mem_array(p->m * p->n, sizeof(float));
    for (size_t h = 0; h < ORDERS; h += 3) { /* sequential and pairwise references */
        product_make(p, distribution, seed, orders[h], ones_b);
        assert_int_equal(p->bound.unsound, 0);
        for (size_t o = 0; o < ORDERS; o++) {
            multiply(p, p->a, p->b, orders[o], got);
            snprintf(what, sizeof what,
                     "distribution %d, %zux%zux%zu, honest %zu, order %zu, seed %d",
                     (int)distribution, p->m, p->n, p->k, h, o, (int)seed);
            assert_true(product_passes(p, got, what));
        }
        product_free(p);
    }
    mem_free(got);
}

static void test_honest_sums_pass(void **state)
{
    static const size_t lengths[] = {4096, 16384};
    (void)state;
    for (int d = 0; d <= EQUAL_TERMS; d++)
        for (size_t l = 0; l < (d == EQUAL_TERMS ? 1 : 2); l++) {
            struct product p = {.m = 16, .n = 1, .k = lengths[l]};
            every_order_passes(&p, (enum distribution)d, 100 + l, true);
        }
}

static void test_honest_matmuls_pass(void **state)
{
    static const size_t shapes[][3] = {{24, 24, 512}, {1, 33, 300}, {17, 1, 129}, {1, 1, 1}};
    (void)state;
    for (int d = 0; d < DISTRIBUTIONS; d++)
        for (size_t s = 0; s < 4; s++) {
            struct product p = {.m = shapes[s][0], .n = shapes[s][1], .k = shapes[s][2]};
            every_order_passes(&p, (enum distribution)d, 7 + s, false);
        }
}

/* A single sum may come out near zero; over many seeds some do. */
static void test_honest_single_sums_pass(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct product p = {.m = 1, .n = 1, .k = 700};
        every_order_passes(&p, (enum distribution)(seed % DRAW_RANDOM_COUNT), seed, false);
    }
}

static void test_lower_precision_matmul_fails(void **state)
{
    static const enum distribution drawn[] = {DRAW_UNIFORM, DRAW_NORMAL, DRAW_HEAVY, DRAW_SPARSE};
    (void)state;
    for (size_t d = 0; d < 4; d++)
        for (unsigned bits = 7; bits <= 10; bits += 3)
            for (uint64_t seed = 0; seed < 3; seed++) {
                struct product p = {.m = 16, .n = 16, .k = 512};
                float got[256];
                product_make(&p, drawn[d], seed, sum_pairwise, false);
                for (size_t i = 0; i < p.m * p.k; i++)
                    p.lower_a[i] = round_to_bits(p.a[i], bits);
                for (size_t i = 0; i < p.k * p.n; i++)
                    p.lower_b[i] = round_to_bits(p.b[i], bits);
                multiply(&p, p.lower_a, p.lower_b, sum_pairwise, got);
                assert_false(product_passes(&p, got, NULL));
                for (size_t i = 0; i < 256; i++) /* nor an output that alone is rounded */
                    got[i] = round_to_bits(p.honest[i], bits);
                assert_false(product_passes(&p, got, NULL));
                product_free(&p);
            }
}

/* Where tf32 is allowed factors may be rounded or cut off to it; bfloat16 and zeros are refused. */
static void test_tf32_allowed(void **state)
{
    static const enum distribution drawn[] = {DRAW_UNIFORM, DRAW_NORMAL, DRAW_HEAVY, DRAW_SPARSE};
    const struct problem tf32_problem = {.precision = "tf32"};
    struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 2);
    (void)state;
    for (size_t d = 0; d < 4; d++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct product p = {.m = 16, .n = 16, .k = 512};
            float lower[256], got[256];
            product_make(&p, drawn[d], seed, sum_pairwise, false);
            rounded_product(&p, 7, false, sum_pairwise, lower);
            rounded_product(&p, 10, false, sum_pairwise, p.honest);
            bound_derive(&tf32_problem, &output, 256, p.n, TERMS(p.k, drawn[d] == DRAW_SPARSE),
                         p.exact, p.honest, lower, &p.bound);
            rounded_product(&p, 10, false, sum_sequential, got);
            assert_true(product_passes(&p, got, "rounded"));
            rounded_product(&p, 10, true, sum_sequential, got);
            assert_true(product_passes(&p, got, "cut off"));
            rounded_product(&p, 7, false, sum_sequential, got);
            assert_false(product_passes(&p, got, NULL));
            for (size_t i = 0; i < 256; i++)
                got[i] = 0;
            assert_false(product_passes(&p, got, NULL));
            product_free(&p);
        }
}

static void test_subtle_wrongs_fail(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct product p = {.m = 32, .n = 32, .k = 512};
        float got[1024] = {0.0f};
        product_make(&p, DRAW_NORMAL, seed, sum_pairwise, false);
        multiply(&p, p.a, p.b, sum_blocked, got);
        assert_true(product_passes(&p, got, "blocked"));
        for (size_t i = 0; i < 32; i++) /* the last term of one row forgotten */
            got[31 * 32 + i] -= p.a[31 * 512 + 511] * p.b[511 * 32 + i];
        assert_false(product_passes(&p, got, NULL));
        multiply(&p, p.a, p.b, sum_blocked, got);
        float kept = got[77];
        got[77] = kept * 1.001f + 0.001f;
        assert_false(product_passes(&p, got, NULL));
        got[77] = NAN;
        assert_false(product_passes(&p, got, NULL));
        got[77] = INFINITY;
        assert_false(product_passes(&p, got, NULL));
        got[77] = kept;
        got[1023] = -got[1023];
        assert_false(product_passes(&p, got, NULL));
        product_free(&p);
    }
}

/* Behind the last whole vector, and where there is none. */
static void test_the_last_element_counts(void **state)
{
    (void)state;
    for (size_t count = 1; count < 10; count++) {
        struct product p = {.m = 1, .n = count, .k = 64};
        float got[10];
        product_make(&p, DRAW_NORMAL, count, sum_pairwise, false);
        memcpy(got, p.honest, count * sizeof *got);
        assert_true(product_passes(&p, got, "honest"));
        got[count - 1] = 2.0f * got[count - 1] + 1.0f;
        assert_false(product_passes(&p, got, NULL));
        got[count - 1] = NAN;
        assert_false(product_passes(&p, got, NULL));
        product_free(&p);
    }
}

/* Softmax over 4096 columns: every output is small, and zeros are within many a tolerance. */
static void test_softmax_of_zeros_fails(void **state)
{
    enum { ROWS = 4, COLUMNS = 4096, COUNT = ROWS * COLUMNS };
    struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 2);
    int64_t extents[RANK_MAX] = {ROWS, COLUMNS};
    float *x = (float *)mem_array(COUNT, sizeof(float)), *y = (float *)mem_array(COUNT, sizeof *y);
    double *exact = (double *)mem_array(COUNT, sizeof(double));
    (void)state;
    for (int d = 0; d < DISTRIBUTIONS; d++) {
        struct bound bound;
        struct mismatch mismatch;
        draw_fill((enum distribution)d, 5, DTYPE_FLOAT32, COUNT, COLUMNS, 1, -1, x);
        for (size_t r = 0; r < ROWS; r++) {
            double most = -INFINITY, sum = 0.0;
            float sum32 = 0.0f;
            for (size_t c = 0; c < COLUMNS; c++)
                most = fmax(most, (double)x[r * COLUMNS + c]);
            for (size_t c = 0; c < COLUMNS; c++) {
                sum += exact[r * COLUMNS + c] = exp((double)x[r * COLUMNS + c] - most);
                sum32 += y[r * COLUMNS + c] = expf(x[r * COLUMNS + c] - (float)most);
            }
            for (size_t c = 0; c < COLUMNS; c++) {
                exact[r * COLUMNS + c] /= sum;
                y[r * COLUMNS + c] /= sum32;
            }
        }
        bound_derive(&float32_problem, &output, COUNT, COLUMNS,
                     TERMS(COLUMNS, distribution_is_alike((enum distribution)d)), exact, y, NULL,
                     &bound);
        check_output(&output, extents, COUNT, &bound, exact, y, &mismatch);
        assert_true(mismatch.passed);
        y[COUNT - 1] = NAN; /* the reciprocal of the sum is a common honest way */
        y[COUNT - 1] = (float)exact[COUNT - 1];
        memset(y, 0, COUNT * sizeof *y);
        check_output(&output, extents, COUNT, &bound, exact, y, &mismatch);
        assert_false(mismatch.passed);
        assert_string_equal(mismatch.pattern, "all zero");
        for (size_t i = 0; i < COUNT; i++)
            y[i] = 1.0f / COLUMNS; /* the mean */
        check_output(&output, extents, COUNT, &bound, exact, y, &mismatch);
        assert_int_equal(mismatch.passed,
                         d == DRAW_ZEROS || d == DRAW_ONES || d == DRAW_TINY || d == DRAW_ROWS);
    }
    mem_free(x);
    mem_free(y);
    mem_free(exact);
}

static float normalize(const float *x, size_t count, double *exact, float *out)
{
    double mean = 0.0, variance = 0.0;
    float mean32 = 0.0f, variance32 = 0.0f;
    for (size_t i = 0; i < count; i++)
        mean += (double)x[i], mean32 += x[i];
    mean /= (double)count, mean32 /= (float)count;
    for (size_t i = 0; i < count; i++) {
        variance += ((double)x[i] - mean) * ((double)x[i] - mean);
        variance32 += (x[i] - mean32) * (x[i] - mean32);
    }
    for (size_t i = 0; i < count; i++) {
        exact[i] = ((double)x[i] - mean) / sqrt(variance / (double)count + 1e-5);
        out[i] = (x[i] - mean32) / sqrtf(variance32 / (float)count + 1e-5f);
    }
    return mean32;
}

static void test_layer_norm_copy_fails(void **state)
{
    enum { ROWS = 8, COLUMNS = 768, COUNT = ROWS * COLUMNS };
    struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 2);
    int64_t extents[RANK_MAX] = {ROWS, COLUMNS};
    static float x[COUNT], y[COUNT], other[COUNT];
    static double exact[COUNT];
    (void)state;
    for (int d = 0; d < DISTRIBUTIONS; d++) {
        struct bound bound;
        struct mismatch mismatch;
        draw_fill((enum distribution)d, 11, DTYPE_FLOAT32, COUNT, COLUMNS, 1, -1, x);
        for (size_t r = 0; r < COUNT; r += COLUMNS) {
            float mean = normalize(x + r, COLUMNS, exact + r, y + r), variance = 0.0f;
            /* another honest way: eight lanes, a reciprocal root, a product by 1/N */
            for (size_t i = 0; i < COLUMNS; i++)
                other[r + i] = x[r + i] - mean;
            variance = sum_lanes(other + r, other + r, COLUMNS, 1, 8) * (1.0f / COLUMNS);
            for (size_t i = 0; i < COLUMNS; i++)
                other[r + i] *= 1.0f / sqrtf(variance + 1e-5f);
        }
        bound_derive(&float32_problem, &output, COUNT, COLUMNS,
                     TERMS(COLUMNS, distribution_is_alike((enum distribution)d)), exact, y, NULL,
                     &bound);
        check_output(&output, extents, COUNT, &bound, exact, other, &mismatch);
        assert_true(mismatch.passed);
        check_output(&output, extents, COUNT, &bound, exact, x, &mismatch);
        assert_int_equal(mismatch.passed, d == DRAW_ZEROS);
    }
}

/* The mean of ones may come out as 1 + eps, and nothing is left then but that error. */
static void test_whole_zero_has_some_room(void **state)
{
    struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 1);
    int64_t extents[RANK_MAX] = {300};
    double exact[300] = {0};
    float got[300] = {0};
    struct bound bound;
    struct mismatch mismatch;
    (void)state;
    bound_derive(&float32_problem, &output, 300, 300, TERMS(300, true), exact, got, NULL, &bound);
    check_output(&output, extents, 300, &bound, exact, got, &mismatch);
    assert_true(mismatch.passed);
    for (size_t i = 0; i < 300; i++)
        got[i] = 0x1p-23f / sqrtf(1e-5f);
    check_output(&output, extents, 300, &bound, exact, got, &mismatch);
    assert_true(mismatch.passed);
    got[299] = 1e-3f;
    check_output(&output, extents, 300, &bound, exact, got, &mismatch);
    assert_false(mismatch.passed);
}

/* -ffast-math makes a machine flush subnormals, and products of tiny numbers are subnormal. */
static void test_flushed_subnormals_pass(void **state)
{
    struct product p = {.m = 16, .n = 16, .k = 64};
    float got[256];
    (void)state;
    product_make(&p, DRAW_TINY, 3, sum_pairwise, false);
    for (size_t i = 0; i < 256; i++)
        got[i] = fabsf(p.honest[i]) < 0x1p-126f ? 0.0f : p.honest[i];
    assert_true(product_passes(&p, got, "flushed"));
    got[0] = 1e-30f;
    assert_false(product_passes(&p, got, NULL));
    product_free(&p);
}

/* Numbers around 1 with relative errors of both signs, about `size` of the number. */
static void perturb(const double *exact, size_t count, double size, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(exact[i] * (1.0 + (i % 2 == 0 ? size : -size)));
}

static void test_bound_formula(void **state)
{
    enum { COUNT = 64 };
    struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 2);
    int64_t extents[RANK_MAX] = {COUNT, 1};
    double exact[COUNT];
    float honest[COUNT], lower[COUNT], got[COUNT];
    struct bound bound;
    struct mismatch mismatch;
    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        exact[i] = 1.0;
    perturb(exact, COUNT, 1e-4, honest);
    perturb(exact, COUNT, 6e-4, lower);
    bound_derive(&float32_problem, &output, COUNT, 1, TERMS(1, false), exact, honest, NULL, &bound);
    assert_true(fabs(bound.element - 8e-4) < 1e-6 && fabs(bound.norm - 8e-4) < 1e-6);
    bound_derive(&float32_problem, &output, COUNT, 1, TERMS(1, false), exact, honest, lower,
                 &bound);
    assert_true(fabs(bound.element - 3e-4) < 1e-6 && fabs(bound.norm - 3e-4) < 1e-6);
    perturb(exact, COUNT, 3e-4, lower); /* too close to be told apart: the honest one wins */
    bound_derive(&float32_problem, &output, COUNT, 1, TERMS(1, false), exact, honest, lower,
                 &bound);
    assert_true(fabs(bound.element - 8e-4) < 1e-6);
    perturb(exact, COUNT, 0.0, honest);
    bound_derive(&float32_problem, &output, COUNT, 1, TERMS(4096, false), exact, honest, NULL,
                 &bound);
    assert_true(fabs(bound.element - 8 * 32 * 0x1p-23) < 1e-9);
    perturb(exact, COUNT, 0.9 * bound.element, got); /* each is near enough, the whole is not */
    check_output(&output, extents, COUNT, &bound, exact, got, &mismatch);
    assert_int_equal(mismatch.bad_count, 0);
    assert_true(!mismatch.passed && mismatch.norm_ratio > 1.0);
}

/* A result in 16 bits: where single terms outweigh the rest, an element may err by a rounding of
 * the inputs to its type, an eighth of what inputs of 7 bits make; not the whole, and not where
 * terms are alike in size. */
static void test_bound_between(void **state)
{
    enum { COUNT = 64, LENGTH = 1024, ROW = 16 };
    const struct tensor_spec output = tensor_of(DTYPE_FLOAT16, 2);
    struct sum sum = {.terms = LENGTH, .outweighed = true, .products = LENGTH};
    double exact[COUNT], less[COUNT];
    uint16_t honest[COUNT], lower[COUNT];
    struct bound bound, other;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        exact[i] = 1.0;
        less[i] = i == 0 ? 1.0 + 0x1p-3 : 1.0;
    }
    dtype_from_double(DTYPE_FLOAT16, exact, COUNT, honest);
    dtype_from_double(DTYPE_FLOAT16, less, COUNT, lower);
    bound_derive(&float32_problem, &output, COUNT, ROW, &sum, exact, honest, lower, &bound);
    assert_true(fabs(bound.element - 0x1p-6) < 1e-7);
    sum.outweighed = false;
    bound_derive(&float32_problem, &output, COUNT, ROW, &sum, exact, honest, lower, &other);
    assert_true(fabs(other.element - 8 * 0x1p-10) < 1e-7 && bound.norm == other.norm);
}

/* A column of a matrix is many rows of one element; one of them may come out near zero. */
static void test_short_rows_share_a_scale(void **state)
{
    enum { COUNT = 20 };
    struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 2);
    int64_t extents[RANK_MAX] = {COUNT, 1};
    double exact[COUNT];
    float got[COUNT];
    struct bound bound;
    struct mismatch mismatch;
    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        exact[i] = i == 0 || i == 18 ? 1e-7 : 1.0;
    perturb(exact, COUNT, 0.0, got);
    bound_derive(&float32_problem, &output, COUNT, 1, TERMS(1, false), exact, got, NULL, &bound);
    got[0] += 2e-7f;
    got[18] += 2e-7f;
    check_output(&output, extents, COUNT, &bound, exact, got, &mismatch);
    assert_true(mismatch.passed);
    got[0] += 2e-6f;
    check_output(&output, extents, COUNT, &bound, exact, got, &mismatch);
    assert_false(mismatch.passed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest_sums_pass),
        cmocka_unit_test(test_honest_matmuls_pass),
        cmocka_unit_test(test_honest_single_sums_pass),
        cmocka_unit_test(test_lower_precision_matmul_fails),
        cmocka_unit_test(test_tf32_allowed),
        cmocka_unit_test(test_subtle_wrongs_fail),
        cmocka_unit_test(test_the_last_element_counts),
        cmocka_unit_test(test_softmax_of_zeros_fails),
        cmocka_unit_test(test_layer_norm_copy_fails),
        cmocka_unit_test(test_whole_zero_has_some_room),
        cmocka_unit_test(test_flushed_subnormals_pass),
        cmocka_unit_test(test_bound_formula),
        cmocka_unit_test(test_bound_between),
        cmocka_unit_test(test_short_rows_share_a_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
