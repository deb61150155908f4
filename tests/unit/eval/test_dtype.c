/* The 16-bit formats bit by bit, and rounding in and out of every type. */
#include "eval/data/dtype.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < DTYPES; i++) {
        enum dtype found;
        assert_true(dtype_parse(dtype_name((enum dtype)i), &found));
        assert_int_equal(found, i);
    }
    enum dtype none;
    assert_false(dtype_parse("float", &none));
    assert_false(dtype_parse("", &none));
    assert_string_equal(dtype_c_type(DTYPE_BFLOAT16), "uint16_t");
    assert_int_equal(dtype_bytes(DTYPE_FLOAT64), 8);
}

/* Every pattern comes back as it was, and the midpoint between two neighbours goes to the even one.
 */
static void every_pattern(enum dtype dtype)
{
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        uint16_t in = (uint16_t)bits, out = 0, next = (uint16_t)(bits + 1);
        double number = dtype_load(dtype, &in, 0);
        dtype_store(dtype, &out, 0, number);
        if (isnan(number)) {
            assert_true(isnan(dtype_load(dtype, &out, 0)));
            continue;
        }
        assert_int_equal(in, out);
        double following = dtype_load(dtype, &next, 0);
        if (!isfinite(number) || !isfinite(following) || (bits & 0x7fff) == 0x7fff)
            continue;
        dtype_store(dtype, &out, 0, (number + following) / 2.0);
        assert_int_equal(out, bits % 2 == 0 ? bits : bits + 1);
        dtype_store(dtype, &out, 0, nextafter((number + following) / 2.0, following));
        assert_int_equal(out, bits + 1);
        dtype_store(dtype, &out, 0, nextafter((number + following) / 2.0, number));
        assert_int_equal(out, bits);
    }
}

static void test_sixteen_bits(void **state)
{
    (void)state;
    every_pattern(DTYPE_FLOAT16);
    every_pattern(DTYPE_BFLOAT16);
}

static double through(enum dtype dtype, double number)
{
    double storage = 0.0;
    dtype_store(dtype, &storage, 0, number);
    return dtype_load(dtype, &storage, 0);
}

static void test_limits(void **state)
{
    (void)state;
    assert_true(through(DTYPE_FLOAT16, 65504.0) == 65504.0);
    assert_true(through(DTYPE_FLOAT16, 65519.9) == 65504.0);
    assert_true(isinf(through(DTYPE_FLOAT16, 65520.0)));
    assert_true(through(DTYPE_FLOAT16, -1e300) == -(double)INFINITY);
    assert_true(through(DTYPE_FLOAT16, 0x1p-24) == 0x1p-24);
    assert_true(through(DTYPE_FLOAT16, 0x1p-25) == 0.0);
    assert_true(signbit(through(DTYPE_FLOAT16, -0.0)) != 0);
    assert_true(isinf(through(DTYPE_BFLOAT16, 0x1p128)));
    assert_true(through(DTYPE_BFLOAT16, 0x1p-133) == 0x1p-133);
    assert_true(through(DTYPE_INT32, 1e10) == 2147483647.0);
    assert_true(through(DTYPE_INT32, -1e10) == -2147483648.0);
    assert_true(through(DTYPE_INT32, 2.5) == 2.0);
    assert_true(through(DTYPE_INT32, (double)NAN) == 0.0);
    for (int i = 0; i < DTYPES; i++) {
        enum dtype dtype = (enum dtype)i;
        assert_true(through(dtype, dtype_max(dtype)) == dtype_max(dtype));
        if (dtype_is_float(dtype)) {
            double epsilon = dtype_epsilon(dtype);
            assert_true(through(dtype, 1.0 + epsilon) == 1.0 + epsilon);
            assert_true(through(dtype, 1.0 + epsilon / 2.0) == 1.0);
        }
    }
}

static void test_arrays(void **state)
{
    double numbers[37], back[37];
    double storage[37];
    (void)state;
    for (int i = 0; i < 37; i++)
        numbers[i] = (i - 18) * 3.0;
    for (int i = 0; i < DTYPES; i++) {
        dtype_from_double((enum dtype)i, numbers, 37, storage);
        dtype_to_double((enum dtype)i, storage, 37, back);
        assert_memory_equal(numbers, back, sizeof numbers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_sixteen_bits),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_arrays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
