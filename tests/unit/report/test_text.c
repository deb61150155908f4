#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "report/report.h"

/* A report says what a profile's numbers are from, and what was not done. */
static void says_where_numbers_are_from(void **state)
{
    static const struct {
        const char *metrics, *wanted; /* NULL: no such line */
    } rows[] = {
        {"{}", NULL},
        {"{\"roofline\": {}, \"profile\": 3, \"notes\": 4}", NULL},
        {"{\"profile\": {\"source\": \"counters\", \"passes\": 9}}",
         "\nprofile   hardware counters, 9 passes\n"},
        {"{\"profile\": {\"source\": \"records\", \"why\": \"not permitted\"}}",
         "\nprofile   CUPTI's records, no hardware counters: not permitted\n"},
        {"{\"profile\": {\"source\": \"resources\", \"why\": \"no libcupti\"}}",
         "\nprofile   resources alone, no hardware counters: no libcupti\n"},
        {"{\"profile\": {\"source\": \"counters\", \"passes\": 9, \"records\": {\"launches\": 5, "
         "\"event_ns\": 1234000, \"span_ns\": 1230000}}}",
         "9 passes\nclocks    events 1.234 ms, CUPTI's records 1.230 ms\n"},
        {"{\"profile\": {\"source\": \"resources\", \"why\": \"no libcupti\", \"records\": "
         "{\"launches\": 0, \"why\": \"no libcupti\"}}}",
         "no libcupti\nclocks    events were checked with the wall clock alone\n"},
        {"{\"profile\": {\"source\": \"counters\", \"passes\": 9, \"records\": {\"launches\": 0, "
         "\"why\": \"not the plan's\"}}}",
         "\nclocks    events were checked with the wall clock alone: not the plan's\n"},
        {"{\"notes\": [\"sanitizer: compute-sanitizer is not installed\", 7, \"another\"]}",
         "\nnote      sanitizer: compute-sanitizer is not installed\n          another\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena *arena = arena_new();
        struct buf text, out;
        struct value *evaluation;
        struct err err;
        buf_init(&text, 4096);
        buf_init(&out, 1 << 20);
        buf_addf(&text, "{\"metrics\": %s}", rows[i].metrics);
        assert_int_equal(
            value_parse_json(arena, "evaluation", buf_text(&text), text.length, &evaluation, &err),
            0);
        const struct report report = {.run = "r1",
                                      .problem = "matmul",
                                      .outcome = "2.000x",
                                      .description = "",
                                      .dims = "",
                                      .started = "",
                                      .evaluation = evaluation};
        report_text(&report, &out);
        if (rows[i].wanted != NULL ? strstr(buf_text(&out), rows[i].wanted) == NULL
                                   : strstr(buf_text(&out), "\nprofile ") != NULL)
            fail_msg("row %zu:\n%s", i, buf_text(&out));
        buf_free(&text);
        buf_free(&out);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_where_numbers_are_from)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
