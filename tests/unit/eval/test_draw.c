/* What is drawn follows from the seed, looks like what it is called, and stays in its bounds. */
#include "eval/data/draw.h"

#include "base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 65536 + 77, ROW = 300 };

static float numbers[COUNT], others[COUNT];

static void draw(enum distribution distribution, uint64_t seed, float *out)
{
    draw_fill(distribution, seed, DTYPE_FLOAT32, COUNT, ROW, 1.0, -1.0, out);
}

struct moments {
    double mean, variance, kurtosis, least, most;
    size_t zeros;
};

static struct moments moments_of(const float *x, size_t count)
{
    struct moments m = {.least = INFINITY, .most = -INFINITY};
    double fourth = 0.0;
    for (size_t i = 0; i < count; i++) {
        m.mean += (double)x[i] / (double)count;
        m.zeros += x[i] == 0.0f;
        m.least = fmin(m.least, (double)x[i]);
        m.most = fmax(m.most, (double)x[i]);
    }
    for (size_t i = 0; i < count; i++) {
        double d = (double)x[i] - m.mean;
        m.variance += d * d / (double)count;
        fourth += d * d * d * d / (double)count;
    }
    m.kurtosis = fourth / m.variance / m.variance;
    return m;
}

static void test_deterministic(void **state)
{
    (void)state;
    for (int d = 0; d < DISTRIBUTIONS; d++) {
        draw((enum distribution)d, 42, numbers);
        draw((enum distribution)d, 42, others);
        assert_memory_equal(numbers, others, sizeof numbers);
        draw((enum distribution)d, 43, others);
        if (d != DRAW_ZEROS && d != DRAW_ONES)
            assert_memory_not_equal(numbers, others, sizeof numbers);
        for (size_t i = 0; i < COUNT; i++)
            assert_true(d == DRAW_NON_FINITE || isfinite(numbers[i]));
    }
}

/* One in most stretches, of each kind as often; of few numbers each kind once. */
static void test_non_finite(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DTYPES; dtype++)
        for (size_t count = 48; count <= COUNT; count *= 16) {
            size_t kinds[3] = {0};
            draw_fill(DRAW_NON_FINITE, 7, (enum dtype)dtype, count, 1, 1, -1, numbers);
            for (size_t i = 0; i < count && dtype_is_float((enum dtype)dtype); i++) {
                double x = dtype_load((enum dtype)dtype, numbers, i);
                kinds[0] += isnan(x) != 0;
                kinds[1] += isinf(x) && x > 0;
                kinds[2] += isinf(x) && x < 0;
            }
            for (size_t k = 0; k < 3 && dtype_is_float((enum dtype)dtype); k++)
                assert_true(kinds[k] > 0 && kinds[k] <= count / 16 / 4 + 1);
        }
}

/* Blocks must not repeat, nor one half of a block the other. */
static void test_no_repeats(void **state)
{
    (void)state;
    draw(DRAW_NORMAL, 1, numbers);
    for (size_t lag = 1; lag <= 4096; lag *= 2) {
        double correlation = 0.0;
        for (size_t i = 0; i + lag < COUNT; i++)
            correlation += (double)numbers[i] * (double)numbers[i + lag];
        assert_true(fabs(correlation) / COUNT < 0.03);
    }
    draw(DRAW_NORMAL, 2, others);
    double across = 0.0;
    for (size_t i = 0; i < COUNT; i++)
        across += (double)numbers[i] * (double)others[i];
    assert_true(fabs(across) / COUNT < 0.03);
}

static void test_shapes(void **state)
{
    (void)state;
    draw(DRAW_UNIFORM, 1, numbers);
    struct moments m = moments_of(numbers, COUNT);
    assert_true(m.least >= -1.0 && m.most < 1.0 && m.most > 0.999 && fabs(m.mean) < 0.02);
    assert_true(fabs(m.variance - 1.0 / 3.0) < 0.01);
    draw(DRAW_NORMAL, 1, numbers);
    m = moments_of(numbers, COUNT);
    assert_true(fabs(m.mean) < 0.02 && fabs(m.variance - 1.0) < 0.02);
    assert_true(fabs(m.kurtosis - 3.0) < 0.15 && m.most > 3.5);
    draw(DRAW_HEAVY, 1, numbers);
    m = moments_of(numbers, COUNT);
    assert_true(m.kurtosis > 20.0 && m.most <= 1e4 && m.least >= -1e4);
    draw(DRAW_SPARSE, 1, numbers);
    m = moments_of(numbers, COUNT);
    assert_true(m.zeros > COUNT / 100 * 88 && m.zeros < COUNT / 100 * 92);
    draw(DRAW_EXTREMES, 1, numbers);
    m = moments_of(numbers, COUNT);
    assert_true(m.most > 9e3 && m.most <= 1e4 && m.least < -9e3 && m.zeros == 0);
    draw(DRAW_TINY, 1, numbers);
    m = moments_of(numbers, COUNT);
    assert_true(m.most < 1e-18 && m.most > 1e-20);
    draw(DRAW_OFFSET, 1, numbers);
    m = moments_of(numbers, COUNT);
    assert_true(fabs(m.mean - 1000.0) < 0.1 && fabs(m.variance - 1.0) < 0.1);
    draw(DRAW_BELOW, 1, numbers);
    m = moments_of(numbers, COUNT);
    assert_true(fabs(m.mean + 1000.0) < 0.1 && fabs(m.variance - 1.0) < 0.1 && m.most < 0.0);
}

static void test_edges(void **state)
{
    (void)state;
    draw(DRAW_ONE_HOT, 1, numbers);
    for (size_t row = 0; row + ROW <= COUNT; row += ROW)
        assert_int_equal(moments_of(numbers + row, ROW).zeros, ROW - 1);
    draw(DRAW_SORTED, 1, numbers);
    for (size_t i = 1; i < ROW; i++)
        assert_true(numbers[i] >= numbers[i - 1]);
    draw(DRAW_ALTERNATING, 1, numbers);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(i % 2 == 0 ? numbers[i] >= 1.0f : numbers[i] <= -0.5f);
    draw(DRAW_ROWS, 1, numbers);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(numbers[i] == numbers[i / ROW * ROW] && fabsf(numbers[i]) <= 1.0f);
    assert_true(moments_of(numbers, COUNT).variance > 0.05);
    draw(DRAW_COLUMNS, 1, numbers);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(numbers[i] == numbers[i % ROW] && fabsf(numbers[i]) <= 1.0f);
    assert_true(moments_of(numbers, ROW).variance > 0.05);
    draw(DRAW_WIDE, 1, numbers);
    size_t sizes[4] = {0};
    for (size_t row = 0; row + ROW <= COUNT; row += ROW) {
        double size = sqrt(moments_of(numbers + row, ROW).variance);
        sizes[0] += size < 1e-6;
        sizes[1] += size >= 1e-6 && size < 1.0;
        sizes[2] += size >= 1.0 && size < 1e6;
        sizes[3] += size >= 1e6;
    }
    for (size_t i = 0; i < 4; i++)
        assert_true(sizes[i] >= COUNT / ROW / 8);
    draw(DRAW_ZEROS, 1, numbers);
    assert_int_equal(moments_of(numbers, COUNT).zeros, COUNT);
}

static void test_bounds(void **state)
{
    static const double bounds[][2] = {{0, 1},       {-1, 1},    {0, 1e6},
                                       {1e-6, 1e-3}, {100, 200}, {-1e30, 1e30},
                                       {0.1, 0.3},   {5, 5},     {-7, -6.5}};
    static double storage[COUNT];
    (void)state;
    for (int d = 0; d < DISTRIBUTIONS; d++)
        for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++)
            for (int t = 0; t < 2; t++) {
                enum dtype dtype = t == 0 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
                double low = bounds[b][0], high = bounds[b][1];
                size_t distinct = 0;
                draw_fill((enum distribution)d, 3, dtype, 3000, ROW, low, high, storage);
                for (size_t i = 0; i < 3000; i++) {
                    double number = dtype_load(dtype, storage, i);
                    if (d == DRAW_NON_FINITE && !isfinite(number))
                        continue;
                    assert_true((number >= low && number <= high) ||
                                (low == high && fabs(number - low) < 1e-6));
                    distinct += i > 0 && number != dtype_load(dtype, storage, i - 1);
                }
                if (d < DRAW_SPARSE && low < high) /* and not heaped up at a bound */
                    assert_true(distinct > 2000);
            }
}

static void test_integers(void **state)
{
    static int32_t drawn[COUNT];
    (void)state;
    for (int d = 0; d < DISTRIBUTIONS; d++) {
        int32_t most = INT32_MIN, least = INT32_MAX;
        draw_fill((enum distribution)d, 3, DTYPE_INT32, COUNT, ROW, 1, -1, drawn);
        for (size_t i = 0; i < COUNT; i++) {
            most = drawn[i] > most ? drawn[i] : most;
            least = drawn[i] < least ? drawn[i] : least;
        }
        assert_true(least >= -100 && most <= 100);
        if (d == DRAW_UNIFORM || d == DRAW_EXTREMES)
            assert_true(least < -90 && most > 90);
        draw_fill((enum distribution)d, 3, DTYPE_INT32, COUNT, ROW, 0.5, 6.5, drawn);
        for (size_t i = 0; i < COUNT; i++)
            assert_true(drawn[i] >= 1 && drawn[i] <= 6);
    }
}

/* Were float64 inputs float32 numbers too, computing in float32 would look exact. */
static void test_doubles_are_doubles(void **state)
{
    static double drawn[4096];
    size_t short_ones = 0;
    (void)state;
    for (int d = 0; d < DRAW_SPARSE; d++) {
        draw_fill((enum distribution)d, 3, DTYPE_FLOAT64, 4096, ROW, 1, -1, drawn);
        for (size_t i = 0; i < 4096; i++)
            short_ones += (double)(float)drawn[i] == drawn[i];
    }
    assert_true(short_ones < 10);
}

static void test_poison(void **state)
{
    static double first[1000], second[1000];
    (void)state;
    for (int t = 0; t < DTYPES; t++) {
        enum dtype dtype = (enum dtype)t;
        memset(first, 0, sizeof first);
        draw_poison(1, dtype, 999, first);
        draw_poison(2, dtype, 999, second);
        assert_memory_not_equal(first, second, 999 * dtype_bytes(dtype));
        for (size_t i = 0; dtype_is_float(dtype) && i < 999; i++)
            assert_true(isnan(dtype_load(dtype, first, i)));
        const unsigned char *after = (const unsigned char *)first + 999 * dtype_bytes(dtype);
        assert_int_equal(after[0], 0); /* not one byte too many */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deterministic), cmocka_unit_test(test_non_finite),
        cmocka_unit_test(test_no_repeats),    cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_edges),         cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_integers),      cmocka_unit_test(test_doubles_are_doubles),
        cmocka_unit_test(test_poison)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
