/* The words for what is wrong, and the edges of what may be infinite. */
#include "eval/check/check.h"

#include "base/mem.h"
#include "eval/data/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 70, COLUMNS = 45, COUNT = ROWS * COLUMNS };

static const struct problem problem = {.precision = "float32"};
static const struct tensor_spec output = {.name = "C", .dtype = DTYPE_FLOAT32, .rank = 2};
static const struct sum sixty_four = {.terms = 64};
static const int64_t extents[RANK_MAX] = {ROWS, COLUMNS};

struct fixture {
    float right[COUNT], got[COUNT];
    double exact[COUNT];
    struct bound bound;
};

static int set_up(void **state)
{
    struct fixture *f = MEM_NEW(struct fixture);
    draw_fill(DRAW_NORMAL, 3, DTYPE_FLOAT32, COUNT, COLUMNS, 1, -1, f->right);
    dtype_to_double(DTYPE_FLOAT32, f->right, COUNT, f->exact);
    memcpy(f->got, f->right, sizeof f->got);
    bound_derive(&problem, &output, COUNT, COLUMNS, &sixty_four, f->exact, f->right, NULL,
                 &f->bound);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    mem_free(*state);
    return 0;
}

static void expect(const struct fixture *f, const char *pattern)
{
    struct mismatch mismatch;
    check_output(&output, extents, COUNT, &f->bound, f->exact, f->got, &mismatch);
    assert_string_equal(mismatch.pattern, pattern);
    assert_int_equal(mismatch.passed, pattern[0] == '\0');
}

static void test_right(void **state)
{
    expect((struct fixture *)*state, "");
}

static void test_not_written(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    draw_poison(9, DTYPE_FLOAT32, COUNT, f->got);
    expect(f, "not written");
    memcpy(f->got, f->right, sizeof f->got);
    draw_poison(9, DTYPE_FLOAT32, 6 * COLUMNS, f->got + 64 * COLUMNS);
    expect(f, "not written at the boundary");
    memcpy(f->got, f->right, sizeof f->got);
    f->got[1000] = NAN;
    expect(f, "NaN");
}

static void test_zero_and_overflow(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    memset(f->got, 0, sizeof f->got);
    expect(f, "all zero");
    memcpy(f->got, f->right, sizeof f->got);
    for (size_t i = 500; i < 600; i++)
        f->got[i] = INFINITY;
    expect(f, "overflow");
}

static void test_moved(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            f->got[j * ROWS + i] = f->right[i * COLUMNS + j];
    expect(f, "transposed");
    memcpy(f->got, f->right + 3, (COUNT - 3) * sizeof(float));
    expect(f, "shifted");
    memcpy(f->got + COLUMNS, f->right, (COUNT - COLUMNS) * sizeof(float));
    expect(f, "shifted");
}

static void test_scaled(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (size_t i = 0; i < COUNT; i++)
        f->got[i] = 0.125f * f->right[i];
    expect(f, "off by a constant factor");
    for (size_t i = 0; i < COUNT; i++)
        f->got[i] = f->right[i] * (1.0f + 1e-3f * sinf((float)i));
    expect(f, "low precision");
}

static void test_boundary(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 40; j < COLUMNS; j++)
            f->got[i * COLUMNS + j] = (float)(i * j % 17) - 8.0f;
    expect(f, "boundary only");
}

static void test_scattered(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (size_t i = 0; i < COUNT; i += 7)
        f->got[i] = 3.0f - f->got[i] * f->got[i];
    expect(f, "scattered");
    for (size_t i = 0; i < COUNT; i++)
        f->got[i] = 5.0f - f->right[i] * f->right[i];
    expect(f, "everywhere");
}

static void test_description(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct mismatch mismatch;
    struct buf text;
    buf_init(&text, 256);
    f->exact[3 * COLUMNS + 17] = 1.25;
    f->got[3 * COLUMNS + 17] = 0.0f;
    check_output(&output, extents, COUNT, &f->bound, f->exact, f->got, &mismatch);
    mismatch_describe(&output, extents, &mismatch, &text);
    assert_string_equal(buf_text(&text), "C[3, 17]: got 0, expected 1.25 (1 of 3150 wrong; "
                                         "scattered)");
    buf_free(&text);
}

static bool passes(const struct fixture *f)
{
    struct mismatch mismatch;
    check_output(&output, extents, COUNT, &f->bound, f->exact, f->got, &mismatch);
    return mismatch.passed;
}

/* Where the exact value is not finite the output must be just that, and nothing else passes by it.
 */
static void test_infinities(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    f->exact[7] = INFINITY;
    assert_false(passes(f));
    f->got[7] = -INFINITY;
    assert_false(passes(f));
    f->got[7] = INFINITY;
    assert_true(passes(f));
    f->exact[8] = (double)NAN;
    assert_false(passes(f));
    f->got[8] = NAN;
    assert_true(passes(f));
    f->exact[9] = -1e300; /* float32 cannot hold it */
    f->got[9] = INFINITY;
    assert_false(passes(f));
    f->got[9] = -INFINITY;
    assert_true(passes(f));
    f->got[10] += 1.0f; /* a wrong one in the same row */
    assert_false(passes(f));
}

static void test_fixed_and_integers(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct problem fixed = {.tolerance_fixed = true, .rtol = 0.01, .atol = 0.001};
    const struct tensor_spec counts = {.name = "N", .dtype = DTYPE_INT32, .rank = 2};
    int32_t numbers[COUNT];
    struct mismatch mismatch;
    bound_derive(&fixed, &output, COUNT, COLUMNS, &sixty_four, f->exact, f->right, NULL, &f->bound);
    for (size_t i = 0; i < COUNT; i++)
        f->got[i] = f->right[i] * 1.0099f;
    assert_true(passes(f));
    f->got[COUNT - 1] = f->right[COUNT - 1] * 1.011f + copysignf(0.001f, f->right[COUNT - 1]);
    assert_false(passes(f)); /* the last one, which no vector covers */
    for (size_t i = 0; i < COUNT; i++)
        f->exact[i] = numbers[i] = (int32_t)i - 1000;
    bound_derive(&fixed, &counts, COUNT, COLUMNS, &sixty_four, f->exact, numbers, NULL, &f->bound);
    check_output(&counts, extents, COUNT, &f->bound, f->exact, numbers, &mismatch);
    assert_true(mismatch.passed);
    numbers[0]++;
    check_output(&counts, extents, COUNT, &f->bound, f->exact, numbers, &mismatch);
    assert_false(mismatch.passed);
    assert_int_equal(mismatch.bad_count, 1);
}

static void test_short_types(void **state)
{
    static const enum dtype types[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT64};
    struct fixture *f = (struct fixture *)*state;
    for (size_t t = 0; t < 3; t++) {
        struct tensor_spec tensor = {.name = "H", .dtype = types[t], .rank = 2};
        const struct problem own = {.precision = dtype_name(types[t])};
        double storage[COUNT];
        struct mismatch mismatch;
        struct bound bound;
        dtype_from_double(types[t], f->exact, COUNT, storage);
        bound_derive(&own, &tensor, COUNT, COLUMNS, &(const struct sum){.terms = 512}, f->exact,
                     storage, NULL, &bound);
        check_output(&tensor, extents, COUNT, &bound, f->exact, storage, &mismatch);
        assert_true(mismatch.passed);
        dtype_store(types[t], storage, 44, dtype_load(types[t], storage, 44) * 1.2 + 0.2);
        check_output(&tensor, extents, COUNT, &bound, f->exact, storage, &mismatch);
        assert_false(mismatch.passed);
        draw_poison(1, types[t], COUNT, storage);
        check_output(&tensor, extents, COUNT, &bound, f->exact, storage, &mismatch);
        assert_string_equal(mismatch.pattern, "not written");
    }
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_right),
        WITH_FIXTURE(test_not_written),
        WITH_FIXTURE(test_zero_and_overflow),
        WITH_FIXTURE(test_moved),
        WITH_FIXTURE(test_scaled),
        WITH_FIXTURE(test_boundary),
        WITH_FIXTURE(test_scattered),
        WITH_FIXTURE(test_description),
        WITH_FIXTURE(test_infinities),
        WITH_FIXTURE(test_fixed_and_integers),
        WITH_FIXTURE(test_short_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
