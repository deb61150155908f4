#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/value.h"
#include "report/report.h"
#include "report/words.h"

static void times_have_a_unit_that_fits(void **state)
{
    char text[32];
    (void)state;
    assert_string_equal(words_time(0, text), "-");
    assert_string_equal(words_time(-1, text), "-");
    assert_string_equal(words_time(312, text), "312.0 ns");
    assert_string_equal(words_time(1938000, text), "1.938 ms");
    assert_string_equal(words_time(4e12, text), "4000.0 s");
}

static void durations_are_those_of_a_clock(void **state)
{
    char text[32];
    (void)state;
    assert_string_equal(words_duration(-5, text), "0:00");
    assert_string_equal(words_duration(7999, text), "0:07");
    assert_string_equal(words_duration(3599999, text), "59:59");
    assert_string_equal(words_duration(3600000, text), "1:00:00");
    assert_string_equal(words_duration(360000000.0, text), "100:00:00");
}

static void counts_and_dollars_are_short(void **state)
{
    char text[32], spent[64];
    (void)state;
    assert_string_equal(words_count(0, text), "0");
    assert_string_equal(words_count(9999, text), "9999");
    assert_string_equal(words_count(48123, text), "48.1 k");
    assert_string_equal(words_count(999499, text), "999 k");
    assert_string_equal(words_count(999500, text), "1 M");
    assert_string_equal(words_count(1234567, text), "1.23 M");
    assert_string_equal(words_dollars(0, text), "$0.00");
    assert_string_equal(words_dollars(4200, text), "$0.0042");
    assert_string_equal(words_dollars(1230000, text), "$1.23");
    assert_string_equal(words_spent(1230000, 5000000, false, spent), "$1.23 of $5.00");
    assert_string_equal(words_spent(1230000, 0, false, spent), "$1.23");
    char lane[80];
    assert_string_equal(words_lane(0.624, 0.004, lane), "lane busy 62 %");
    assert_string_equal(words_lane(0.1, 0.3, lane),
                        "lane busy 10 %, 30 % waiting for another twagent");
    assert_string_equal(words_spent(0, 0, true, spent), "not priced");
    assert_string_equal(words_spent(10000, 0, true, spent), "at least $0.01: not all is priced");
}

static void a_pause_says_when_and_how_long(void **state)
{
    char text[96];
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    assert_string_equal(words_pause(1795246724123u, 0, text), "since Sat 07:38");
    assert_string_equal(words_pause(1795246724123u, 1795246724123u + 3900000u, text),
                        "Sat 07:38 for 1:05:00");
    /* a clock that was set back while it lasted */
    assert_string_equal(words_pause(1795246724123u, 1795246000000u, text), "Sat 07:38 for 0:00");
}

/* What a person reads at seven in the morning is in both. */
static void a_report_says_why_it_waited_and_ended(void **state)
{
    const struct report_pause pauses[] = {
        {1795246724123u, 1795246724123u + 60000u, "openai: <quota>"},
        {1795250000000u, 1795250000000u + 5000u, "paused by a person"}};
    static const struct report_refusal refusals[] = {
        {.why = "no clang found", .first = "r1-c1", .count = 9},
        {.why = "wrong result, not written", .first = "r1-c7", .count = 3}};
    const struct report report = {.run = "r3",
                                  .problem = "matmul",
                                  .description = "d",
                                  .started = "s",
                                  .outcome = "no kernel was found",
                                  .dims = "M 1",
                                  .stopped = "patience: nothing better for 5 rounds",
                                  .refusals = refusals,
                                  .refusal_count = 2,
                                  .models = "a 67 %, b 33 %",
                                  .spent = "$1.23 of $5.00, 1.2 M tokens, 312 answers",
                                  .pauses = pauses,
                                  .pause_count = 2};
    static const char refused[] = "9 of 12: no clang found (twagent show r1-c1); 3 of 12: wrong "
                                  "result, not written (twagent show r1-c7)";
    const char *const texts[] = {"Sat 07:38 for 1:00", "patience: nothing better", "a 67 %, b 33 %",
                                 "$1.23 of $5.00",     "paused by a person",       refused};
    struct buf text, html;
    (void)state;
    buf_init(&text, 1 << 20);
    buf_init(&html, 1 << 20);
    report_text(&report, &text);
    report_html(&report, &html);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_non_null(strstr(buf_text(&text), texts[i]));
        assert_non_null(strstr(buf_text(&html), texts[i]));
    }
    assert_non_null(strstr(buf_text(&html), "&lt;quota&gt;")); /* a provider's own words */
    assert_null(strstr(buf_text(&html), "<quota>"));
    buf_free(&text);
    buf_free(&html);
}

static const char final_record[] =
    "{\"win\":true,\"baseline\":\"reference\",\"metrics\":{\"error\":{\"of_allowed\":0.19,"
    "\"honest\":0.12,"
    "\"inputs\":\"normal\"},\"checked_up_to\":{\"M\":202,\"N\":161}},"
    "\"time_ns\":{\"median\":848200},\"speedup\":{\"median\":1.27,"
    "\"low\":1.201,\"high\":1.326},\"baselines\":{\"reference\":{\"ns\":{\"median\":9e5},"
    "\"speedup\":{\"median\":1.27,\"low\":1.2,\"high\":1.33},\"win\":true},\"naive\":{\"ns\":{"
    "\"median\":8e6},"
    "\"speedup\":{\"median\":9.4},\"finding\":\"too noisy to say\"}}}";
static const struct report_candidate searched[] = {{.id = "r1-c1",
                                                    .parent = "",
                                                    .idea = "",
                                                    .source = "a.c",
                                                    .verdict = "kernel",
                                                    .reason = "",
                                                    .time_ns = 744300,
                                                    .speedup = 1.385,
                                                    .low = 1.286,
                                                    .high = 1.4,
                                                    .champion = true}};

/* The headline is of the final measurement, the dots and rows of the search: each says which. */
static void a_report_says_whose_numbers_are_which(void **state)
{
    struct report report = {.run = "r1",
                            .problem = "matmul",
                            .description = "d",
                            .started = "s",
                            .outcome = "1.270x reference",
                            .dims = "M 1",
                            .against = "reference",
                            .definition = "numpy",
                            .best = "r1-c1",
                            .final = true,
                            .candidates = searched,
                            .count = 1};
    struct arena *arena = arena_new();
    struct value *evaluation;
    struct buf text;
    (void)state;
    assert_int_equal(
        value_parse_json(arena, "e", final_record, strlen(final_record), &evaluation, NULL), 0);
    report.evaluation = evaluation;
    buf_init(&text, 1 << 20);
    report_text(&report, &text);
    assert_non_null(strstr(buf_text(&text), "This is the final measurement"));
    assert_non_null(strstr(buf_text(&text), "848 us (final measurement)"));
    assert_non_null(strstr(buf_text(&text), "fastest of 1 evaluated, as the search measured them"));
    assert_non_null(
        strstr(buf_text(&text), "0.19 of what is allowed, an honest computation's 0.12"));
    assert_non_null(strstr(buf_text(&text), "checked   up to M=202, N=161\n"));
    assert_non_null(strstr(buf_text(&text), "\ntake it   twagent show r1-c1 --source -o kernel\n"));
    buf_reset(&text);
    report_html(&report, &text);
    assert_non_null(
        strstr(buf_text(&text), "<dt>error</dt><dd>0.19 of what is allowed, an honest"));
    assert_non_null(strstr(buf_text(&text), "<dt>checked up to</dt><dd>M=202, N=161</dd>"));
    const char *head = strstr(buf_text(&text), "This is the final measurement");
    const char *chart = strstr(buf_text(&text), "as the search measured it");
    const char *band = strstr(buf_text(&text), ">final measurement 1.27x<");
    const char *row = strstr(buf_text(&text), "<td>final</td>");
    assert_true(chart && band > chart && head > band && row > head); /* first what was found */
    assert_true(strstr(row, "848 us") < strstr(row, "740 us"));      /* then the search's own */
    assert_non_null(strstr(buf_text(&text), "<p class=\"outcome\">848 us: 1.270x reference"));
    assert_non_null(strstr(buf_text(&text), "its 95 % interval over numpy"));
    assert_non_null(strstr(buf_text(&text), "the final measurement, over numpy: fresh processes"));
    /* one verdict: of the headline's row, and what another one shows by itself */
    assert_non_null(strstr(buf_text(&text), "<span class=\"win\">the headline: faster</span>"));
    assert_non_null(
        strstr(buf_text(&text), "<span class=\"soft\">by itself: too noisy to say</span>"));
    assert_non_null(
        strstr(buf_text(&text), "9.40x</td><td class=\"n\" data-name=\"95 %\">one sample</td>"));
    assert_non_null(strstr(buf_text(&text), "<body class=\"is-win\">"));
    assert_non_null(strstr(buf_text(&text), "badge win\">verified win<"));
    report.final = false; /* nothing but the search's */
    buf_reset(&text);
    report_html(&report, &text);
    assert_non_null(strstr(buf_text(&text), "This is the search's own measurement"));
    assert_null(strstr(buf_text(&text), "class=\"is-win\"")); /* green is for what was verified */
    assert_null(strstr(buf_text(&text), ">final measurement"));
    assert_null(strstr(buf_text(&text), "<td>final</td>"));
    buf_free(&text);
    arena_free(arena);
}

static void one_is_no_plural(void **state)
{
    char text[48];
    (void)state;
    assert_string_equal(words_number(1, "answer", text), "1 answer");
    assert_string_equal(words_number(0, "answer", text), "0 answers");
    assert_string_equal(words_number(12, "kernel", text), "12 kernels");
    assert_string_equal(words_finding("too noisy to say", false, 0.9), "too noisy to say");
    assert_string_equal(words_finding("", true, 1.3), "faster"); /* a record that is older */
    assert_string_equal(words_finding("", false, 1.3), "no difference shown");
    assert_string_equal(words_finding(NULL, false, 0.99), "slower");
    assert_string_equal(words_finding("", false, 0), "no difference shown"); /* not measured */
    char left_out[160];
    assert_string_equal(words_left_out("", left_out), "");
    assert_string_equal(words_left_out("torch (--effort final times it)", left_out),
                        "; left out: torch (--effort final times it)");
    char caveats[160];
    assert_string_equal(words_caveats(NULL, "", caveats), "");
    assert_non_null(strstr(words_caveats("zeros: Y", NULL, caveats), "UNFIT PROBLEM"));
    assert_string_equal(words_caveats("", "NOT SANDBOXED: no seccomp", caveats),
                        "; NOT SANDBOXED: no seccomp");
    words_caveats("zeros: Y", "NOT SANDBOXED: no Landlock, no seccomp", caveats);
    assert_non_null(strstr(caveats, "NOT SANDBOXED"));
    assert_non_null(strstr(caveats, "UNFIT PROBLEM: a wrong kernel may pass"));
}

static void digits_are_those_of_the_interval(void **state)
{
    static const struct {
        double middle, low, high;
        const char *ratio, *least, *most;
    } rows[] = {{1.97012, 1.93456, 2.00789, "1.97", "1.93", "2.01"},
                {1.97012, 1.96512, 1.97589, "1.970", "1.965", "1.976"},
                {1455, 987, 2019, "1500", "1000", "2000"},
                {0.0553, 0.0002, 2.388, "0.06", "0.0002", "2.4"},
                {2.24049, 2.24048, 2.24051, "2.240", "2.240", "2.241"}, /* four at most */
                {2.24049, 2.24049, 2.24049, "2.24", "2.24", "2.24"},    /* of one sample */
                {2.24049, NAN, NAN, "2.24", "-", "-"},
                {2.24049, 0, 0, "2.24", "0", "0"}, /* not known */
                {9.996, 9.5, 10.5, "10.0", "9.5", "10.5"}};
    char text[32];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double low = rows[i].low, high = rows[i].high;
        assert_string_equal(words_ratio(rows[i].middle, low, high, text), rows[i].ratio);
        assert_string_equal(words_ratio(low, low, high, text), rows[i].least);
        assert_string_equal(words_ratio(high, low, high, text), rows[i].most);
    }
    assert_string_equal(words_time_in(5148000, 5017000, 10490000, text), "5.1 ms");
    assert_string_equal(words_time_in(10490000, 5017000, 10490000, text), "10.5 ms");
    assert_string_equal(words_time_in(848213, 841000, 855000, text), "848 us");
    assert_string_equal(words_time_in(999700, 940000, 1060000, text), "1000 us");
    assert_string_equal(words_time_in(513000, 200000, 2000000, text), "500 us");
    assert_string_equal(words_time_in(0, 0, 0, text), "-");
    assert_string_equal(words_time_in(1234567, 0, 0, text), "1.23 ms"); /* nobody knows how far */
    assert_string_equal(words_time_by(1234567, 2, 1.9, 2.1, text), "1.23 ms");
    assert_string_equal(words_time_by(1234567, 2, 1, 4, text), "1.2 ms");
    assert_string_equal(words_spread(5.1376, text), "514 %");
    assert_string_equal(words_spread(0.0053, text), "0.53 %");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_those_of_the_interval),
        cmocka_unit_test(times_have_a_unit_that_fits),
        cmocka_unit_test(durations_are_those_of_a_clock),
        cmocka_unit_test(counts_and_dollars_are_short),
        cmocka_unit_test(a_pause_says_when_and_how_long),
        cmocka_unit_test(one_is_no_plural),
        cmocka_unit_test(a_report_says_whose_numbers_are_which),
        cmocka_unit_test(a_report_says_why_it_waited_and_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
