/* What a record says of a device beside the timed calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "eval/measure/measure.h"

static char *watched(const struct bench *bench)
{
    struct buf text;
    struct json json;
    buf_init(&text, 4096);
    json_init(&json, &text);
    json_object(&json);
    bench_put_watched(bench, &json);
    json_object_end(&json);
    return buf_take(&text);
}

static void test_ranges(void **state)
{
    static struct bench bench; /* zeroed, and large */
    const struct device_state seen[] = {
        {.looks = 1,
         .sm_mhz = {1980, 1980},
         .memory_mhz = {3201, 3201},
         .celsius = {40, 40},
         .limits = 1,
         .span_ns = 90,
         .wall_ns = 100},
        {.looks = 1,
         .sm_mhz = {1755, 1755},
         .memory_mhz = {3201, 3201},
         .celsius = {44, 44},
         .limits = 1 << 2 | 1 << 6,
         .other_looks = 1,
         .others = {2, 2},
         .span_ns = 100,
         .wall_ns = 100},
        {.span_ns = 95, .wall_ns = 100}, /* nothing was known that time */
        {.looks = 1,
         .sm_mhz = {1980, 1980},
         .memory_mhz = {3201, 3201},
         .celsius = {41, 41},
         .other_looks = 1,
         .others = {1, 1},
         .span_ns = 95,
         .wall_ns = 100},
    };
    (void)state;
    char *text = watched(&bench);
    assert_string_equal(text, "{}");
    mem_free(text);
    bench_watch(&bench, &seen[0]);
    text = watched(&bench);
    assert_non_null(strstr(text, "\"other_processes\":null"));
    mem_free(text);
    for (size_t i = 1; i < sizeof seen / sizeof seen[0]; i++)
        bench_watch(&bench, &seen[i]);
    text = watched(&bench);
    assert_string_equal(text, "{\"device_state\":{\"events_of_wall_clock\":0.95,\"looks\":3,"
                              "\"sm_clock_mhz\":[1755,1980],\"memory_clock_mhz\":[3201,3201],"
                              "\"temperature_celsius\":[40,44],\"clock_limits\":[\"power cap\","
                              "\"hardware thermal\"],\"other_processes\":[1,2]}}");
    mem_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
