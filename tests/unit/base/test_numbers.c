/* clock, hash and random: what gives numbers. */
#include "check.h"

#include "../normal.h"
#include "base/clock.h"
#include "base/hash.h"

static uint64_t frozen(void *context)
{
    return *(const uint64_t *)context;
}

static void clock_runs_and_can_be_injected(void **state)
{
    (void)state;
    uint64_t before = clock_now_ns();
    assert_true(clock_now_ns() >= before);
    uint64_t now = 5000000999u;
    clock_inject(frozen, &now);
    assert_int_equal(clock_now_ns(), now);
    assert_int_equal(clock_now_ms(), 5000);
    now += 1000000;
    assert_int_equal(clock_now_ms(), 5001);
    clock_inject(NULL, NULL);
    assert_true(clock_now_ns() >= before);
    assert_true(clock_wall_ms() > 1500000000000u);
}

static void wall_times_are_written_as_utc(void **state)
{
    (void)state;
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1795246724123u, "2026-11-21T07:38:44.123Z"},
        {951782400999u, "2000-02-29T00:00:00.999Z"},
        {253402300799999u, "9999-12-31T23:59:59.999Z"},
        {UINT64_MAX, "9999-12-31T23:59:59.999Z"},
    };
    setenv("TZ", "America/New_York", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[32];
        clock_format_wall(cases[i].ms, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void hashes_are_xxh3(void **state)
{
    (void)state;
    char text[33];
    hash_format(hash_bytes("", 0), text);
    assert_string_equal(text, "99aa06d3014798d86001c324468d497f"); /* XXH3_128bits("") */
    struct hash a = hash_bytes("a", 1), b = hash_bytes("b", 1);
    assert_int_equal(hash_compare(a, a), 0);
    assert_true(hash_compare(a, b) != 0);
    assert_int_equal(hash_compare(a, b), -hash_compare(b, a));
    struct hash ab = hash_combine(a, b), ba = hash_combine(b, a);
    assert_true(hash_compare(ab, ba) != 0);
    struct hash low = {1, 2}, high = {1, 3};
    assert_true(hash_compare(low, high) < 0);
    assert_true(hash_checksum("abc", 3, 1) == hash_checksum("abc", 3, 1));
    assert_true(hash_checksum("abc", 3, 1) != hash_checksum("abc", 3, 2));
    assert_true(hash_checksum("abc", 3, 1) != hash_checksum("abd", 3, 1));
}

static void generator_is_xoshiro(void **state)
{
    (void)state;
    struct random random = {{1, 2, 3, 4}}; /* the reference code's first outputs */
    static const uint64_t first[] = {41943041u, 58720359u, 3588806011781223u, 3591011842654386u};
    for (size_t i = 0; i < COUNT(first); i++)
        assert_int_equal(random_next(&random), first[i]);
    struct random a, b;
    random_init(&a, 42);
    random_init(&b, 42);
    assert_int_equal(random_next(&a), random_next(&b));
    random_init(&b, 43);
    assert_true(random_next(&a) != random_next(&b));
    assert_true(random_seed() != random_seed());
}

static void below_is_bounded_and_even(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 7);
    static const uint64_t bounds[] = {
        1, 2, 3, 10, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, UINT64_MAX};
    for (size_t i = 0; i < COUNT(bounds); i++)
        for (int k = 0; k < 1000; k++)
            assert_true(random_below(&random, bounds[i]) < bounds[i]);
    unsigned counts[6] = {0};
    for (int i = 0; i < 60000; i++)
        counts[random_below(&random, 6)]++;
    for (int i = 0; i < 6; i++)
        assert_true(counts[i] > 9600 && counts[i] < 10400);
}

static void units_and_normals_have_their_moments(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 11);
    const int count = 200000;
    double unit_sum = 0, sum = 0, squares = 0;
    for (int i = 0; i < count; i++) {
        double unit = random_unit(&random), normal = random_normal(&random);
        assert_true(unit >= 0.0 && unit < 1.0);
        unit_sum += unit;
        sum += normal;
        squares += normal * normal;
    }
    assert_near(unit_sum / count, 0.5, 0.005);
    assert_near(sum / count, 0.0, 0.01);
    assert_near(squares / count, 1.0, 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_runs_and_can_be_injected),
        cmocka_unit_test(wall_times_are_written_as_utc),
        cmocka_unit_test(hashes_are_xxh3),
        cmocka_unit_test(generator_is_xoshiro),
        cmocka_unit_test(below_is_bounded_and_even),
        cmocka_unit_test(units_and_normals_have_their_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
