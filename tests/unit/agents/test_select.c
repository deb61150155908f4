/* Selection: the best by the upper end of the time, at least one of any. */
#include "check.h"

#include "agents/search/run/select.h"

#include <math.h>

static const struct {
    size_t count;
    double share;
    int64_t beam;
    size_t expected;
} counts[] = {
    {0, 0.5, 0, 0},   {0, 0.5, 4, 0},  {1, 0.01, 0, 1},  {10, 0.25, 0, 3},  {12, 0.25, 0, 3},
    {30, 0.1, 0, 3},  {10, 0, 0, 1},   {10, -1, 0, 1},   {10, 1, 0, 10},    {10, 7, 0, 10},
    {10, 0.25, 4, 4}, {3, 0.25, 4, 3}, {10, 0.5, -1, 5}, {100, 0.07, 0, 7},
};

static void test_count(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(counts); i++)
        assert_int_equal(select_count(counts[i].count, counts[i].share, counts[i].beam),
                         counts[i].expected);
    assert_int_equal(select_count(5, NAN, 0), 1);
}

static void test_order(void **state)
{
    (void)state;
    struct contender all[] = {
        {.time_high = 50, .time_ns = 30, .number = 4}, /* a lucky median, a wide interval */
        {.time_high = NAN, .time_ns = 1, .number = 1},
        {.time_high = 40, .time_ns = 39, .number = 3},
        {.time_high = 50, .time_ns = 29, .number = 9},
        {.time_high = 50, .time_ns = 30, .number = 2},
    };
    static const int64_t expected[] = {3, 9, 2, 4, 1};
    select_sort(all, COUNT(all));
    for (size_t i = 0; i < COUNT(all); i++)
        assert_int_equal(all[i].number, expected[i]);
    select_sort(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_count), cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
