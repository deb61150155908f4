#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "report/report.h"

/* The page alone: what the script puts in are text nodes, which tests/tools/report-page looks at.
 */
static void a_page_takes_no_markup(void **state)
{
    const struct report report = {.run = "r1",
                                  .problem = "a<script>&\"\u202Eb",
                                  .outcome = "<b>",
                                  .description = "",
                                  .dims = "",
                                  .started = ""};
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 20);
    report_html(&report, &out);
    assert_non_null(strstr(buf_text(&out), "a&lt;script&gt;&amp;&quot;\\u202eb"));
    assert_null(strstr(buf_text(&out), "a<script"));
    buf_free(&out);
}

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

static size_t times(const char *text, const char *word)
{
    size_t count = 0;
    for (; (text = strstr(text, word)) != NULL; text++)
        count++;
    return count;
}

static const char *const tune_lines[] = {
    "impact of </script>.c: 1 kernels of 1 points measured", "BM x BN          1.20x", "1 r1-c4 ",
    "some were not", "\n   1  4 kernels of 5 evaluated; best r1-c4 2.00x (1.90"};

/* A tune's findings and islands are in all three views, and a source's name breaks none of them. */
static void tells_a_tune_and_islands(void **state)
{
    const struct kernel_row row = {.id = "r1-c4",
                                   .correct = true,
                                   .island = 1,
                                   .speedup = 2,
                                   .speedup_low = 1.9,
                                   .speedup_high = 2.1};
    const struct report_island islands[] = {{0, 3, 0, NULL}, {1, 5, 4, &row}};
    const struct tuning_point point = {"r1-c4", "{\"BM\": 64}", "kernel", 1e6};
    const struct tuning_kernel kernel = {.points = &point,
                                         .name = "</script>.c",
                                         .measured = 1,
                                         .kernels = 1,
                                         .space = 12,
                                         .impact = {.points = 9,
                                                    .explained = 0.9,
                                                    .count = 1,
                                                    .pair_count = 1,
                                                    .effects = {{"BM", {1.7, 1.6, 1.8}, 3, 64}},
                                                    .pairs = {{"BM", "BN", {1.2, 1.1, 1.3}}}}};
    const struct tuning_top top = {.id = "r1-c4",
                                   .source = "a.c BM=64",
                                   .time_ns = 1e6,
                                   .speedup = 2,
                                   .low = 1.9,
                                   .high = 2.1};
    const struct interval two = {2, 1.9, 2.1, 20, 0};
    const struct tuning_rung rung = {"M=7", false, true, "", "naive", two, two, FINDING_FASTER, ""};
    const struct tuning tuning = {.run = "r1",
                                  .strategy = "random",
                                  .kernel_count = 1,
                                  .top_count = 1,
                                  .kernels = &kernel,
                                  .top = &top,
                                  .ladder = {"r1-c4", 1, 5, &rung, (double)NAN, true, true, false}};
    struct report report = {.run = "r1",
                            .problem = "matmul",
                            .outcome = "2.000x",
                            .description = "",
                            .dims = "",
                            .started = "",
                            .against = "naive",
                            .tuning = &tuning,
                            .islands = islands,
                            .island_count = 2};
    BUF_LOCAL(out, 8 << 20);
    ARENA_LOCAL(arena);
    struct value *value;
    struct err err;
    (void)state;
    report_text(&report, &out);
    for (size_t i = 0; i < sizeof tune_lines / sizeof tune_lines[0]; i++)
        if (strstr(buf_text(&out), tune_lines[i]) == NULL)
            fail_msg("no \"%s\" in:\n%s", tune_lines[i], buf_text(&out));
    buf_reset(&out);
    report_json(&report, &out);
    assert_int_equal(value_parse_json(arena, "report", out.data, out.length, &value, &err), 0);
    assert_int_equal(value_get(value_get(value, "tuning"), "kernels")->count, 1);
    assert_int_equal(value_int(value_at(value, "tuning.stability"), "wanted", 0), 5);
    assert_string_equal(value_text(value_get(value, "islands")->items[1], "best", ""), "r1-c4");
    buf_reset(&out);
    report_html(&report, &out);
    assert_int_equal(times(buf_text(&out), "</script>"), 2);
    report.tuning = NULL;
    report.island_count = 0;
    buf_reset(&out);
    report_text(&report, &out);
    assert_null(strstr(buf_text(&out), "islands"));
}

static void a_description_forges_no_line(void **state)
{
    const struct report report = {.run = "r1",
                                  .problem = "p",
                                  .outcome = "no champion",
                                  .description = "one\nr9 p: 99x, verified\n\033[2J\u202Ex",
                                  .dims = "",
                                  .started = ""};
    BUF_LOCAL(out, 1 << 20);
    (void)state;
    report_text(&report, &out);
    assert_non_null(strstr(buf_text(&out), "\nproblem   one\n          r9 p: 99x, verified\n"));
    assert_null(strchr(buf_text(&out), '\033'));
    assert_null(strstr(buf_text(&out), "\u202E"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_where_numbers_are_from), cmocka_unit_test(a_page_takes_no_markup),
        cmocka_unit_test(a_description_forges_no_line), cmocka_unit_test(tells_a_tune_and_islands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
