#include "check.h"

#include "cli/print/run_words.h"
#include "cli/status/log_tail.h"

#include <time.h>
#include <unistd.h>

static struct run_record record_of(const char *state, const char *stopped)
{
    return (struct run_record){.id = "r3",
                               .state = state,
                               .stopped = stopped,
                               .paused = "",
                               .options = "{}",
                               .choice = "{}"};
}

static void models_have_shares_where_there_are_several(void **state)
{
    struct arena *arena = arena_new();
    struct run_record run = record_of("running", "");
    (void)state;
    assert_null(run_words_models(arena, &run));
    run.choice = "{\"model\":\"a\",\"idea_model\":null,\"code_model\":null}";
    assert_string_equal(run_words_models(arena, &run), "a");
    run.choice = "{\"model\":\"a@2,b\"}";
    assert_string_equal(run_words_models(arena, &run), "a 67 %, b 33 %");
    run.choice = "{\"model\":\"a\",\"code_model\":\"b@3,c@1\"}";
    assert_string_equal(run_words_models(arena, &run), "ideas: a; code: b 75 %, c 25 %");
    run.choice = "not JSON";
    assert_null(run_words_models(arena, &run));
    arena_free(arena);
}

static void the_end_is_said_in_full(void **state)
{
    static const struct {
        const char *state, *stopped, *options, *expected;
        bool more;
    } cases[] = {
        {"done", "", "{\"rounds\":4}", "all rounds done", false},
        {"done", "", "{\"rounds\":9}",
         "nothing left to propose: the starts have no more numbers to tune (more: --model NAME, or "
         "another start)",
         false},
        {"done", "", "{\"rounds\":9,\"kernel\":\"k.c\"}", "nothing left to propose", false},
        {"done", "budget: a time of 1:00", "{}", "budget: a time of 1:00", true},
        {"done", "target reached: at least 2x", "{}", "target reached: at least 2x", false},
        {"done", "patience: nothing better for 3 rounds", "{}",
         "patience: nothing better for 3 rounds", false},
        {"done", "no progress: 20 rounds without a new kernel", "{}",
         "no progress: 20 rounds without a new kernel", false},
        {"stopped", "interrupted", "{}",
         "interrupted by a person (Ctrl-C, twagent stop) or a signal", true},
        {"died", "the program was killed", "{}", "the program was killed", true},
        {"done", "budget: another request could pass $5.00", "{}",
         "budget: another request could pass $5.00", true},
        {"done", "openai: insufficient_quota", "{}", "openai: insufficient_quota", true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena *arena = arena_new();
        struct run_record run = record_of(cases[i].state, cases[i].stopped);
        run.options = cases[i].options;
        run.round = 4;
        run.evaluated = 20;
        run.elapsed_ms = 500000;
        assert_string_equal(run_words_end(arena, &run), cases[i].expected);
        assert_int_equal(run_can_go_on(&run), cases[i].more);
        assert_int_equal(run_words_resume(arena, &run) != NULL, cases[i].more);
        arena_free(arena);
    }
}

/* What is said can be typed: a resume takes it, and it is twice what the run was told. */
static void a_time_that_was_too_short_says_so(void **state)
{
    struct arena *arena = arena_new();
    struct run_record run = record_of("done", "budget: a time of 1:00");
    (void)state;
    assert_non_null(strstr(run_words_end(arena, &run), "before one candidate was measured"));
    arena_free(arena);
}

static void the_reference_is_called_as_its_person_calls_it(void **state)
{
    struct arena *arena = arena_new();
    struct run_record run = record_of("done", "");
    (void)state;
    run.best = "r3-c1";
    run.finding = run.noise = run.left_out = run.unfit = run.unconfined = "";
    run.speedup = 2;
    run.speedup_low = 1.9;
    run.speedup_high = 2.1;
    run.baseline = "reference";
    run.definition = "numpy";
    assert_string_equal(run_words_outcome(arena, &run),
                        "2.00x numpy (95 %: 1.90 to 2.10), not verified");
    run.baseline = "naive";
    assert_non_null(strstr(run_words_outcome(arena, &run), "x naive (95"));
    run.baseline = "reference";
    run.definition = ""; /* as a record of an earlier version has it */
    assert_non_null(strstr(run_words_outcome(arena, &run), "x reference (95"));
    arena_free(arena);
}

static void a_model_that_was_asked_is_told_in_few_words(void **state)
{
    struct arena *arena = arena_new();
    struct run_record run = record_of("done", "");
    const char **lines;
    (void)state;
    run.asked = "{\"list\":[{\"name\":\"a\",\"asked\":3,\"answered\":3}]}";
    assert_int_equal(run_words_asked(arena, &run, &lines), 1);
    assert_string_equal(lines[0], "a: 3 asked, 3 answered, $0.00");
    arena_free(arena);
}

static void a_budget_says_a_larger_one(void **state)
{
    static const struct {
        const char *stopped, *expected;
    } cases[] = {
        {"budget: 40 evaluations", "twagent resume r3 --budget-evaluations 80"},
        {"budget: a time of 10:00", "twagent resume r3 --budget-time 20m"},
        {"budget: the time was over before the problem was open",
         "twagent resume r3 --budget-time 20m"},
        {"budget: another request could pass $2.50", "twagent resume r3 --budget-usd 5"},
        {"budget: another request could pass 3000 tokens, with 5 in doubt for answers that said no "
         "usage",
         "twagent resume r3 --budget-tokens 6000"},
    };
    struct arena *arena = arena_new();
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run_record run = record_of("done", cases[i].stopped);
        run.options = "{\"budget_evaluations\":40,\"budget_ms\":600000,"
                      "\"budget_micro_dollars\":2500000,\"budget_tokens\":3000}";
        assert_string_equal(run_words_resume(arena, &run), cases[i].expected);
        char *typed = arena_strdup(arena, strstr(cases[i].expected, "--"));
        *strchr(typed, ' ') = '|';
        (void)settings_of(arena, COMMAND_RESUME, typed);
    }
    arena_free(arena);
}

static void a_mailbox_says_where(void **state)
{
    struct arena *arena = arena_new();
    struct run_record run = record_of("done", "3 answers awaited");
    (void)state;
    run.choice = "{\"model\":\"mailbox//home/me/box@2,openai/a\"}";
    assert_string_equal(run_words_end(arena, &run),
                        "3 answers awaited: /home/me/box (the .md of each says how)");
    run.choice = "{\"provider\":\"mailbox\",\"idea_model\":\"/a\",\"code_model\":\"/b\"}";
    assert_string_equal(run_words_end(arena, &run),
                        "3 answers awaited: /a, /b (the .md of each says how)");
    assert_true(run_can_go_on(&run));
    arena_free(arena);
}

static void spending_has_its_caps(void **state)
{
    struct spending spending = {
        .requests = 320, .answers = 312, .tokens = 1200000, .micro_dollars = 1230000};
    struct arena *arena = arena_new();
    struct run_record run = record_of("running", "");
    (void)state;
    assert_string_equal(run_words_spent(arena, &run, &spending),
                        "$1.23, 1.2 M tokens, 312 answers");
    run.options = "{\"budget_micro_dollars\":5000000,\"budget_tokens\":5000000}";
    assert_string_equal(run_words_spent(arena, &run, &spending),
                        "$1.23 of $5.00, 1.2 M of 5 M tokens, 312 answers");
    run.options = "{}";
    spending.micro_dollars = 0; /* a server of one's own */
    assert_string_equal(run_words_spent(arena, &run, &spending),
                        "$0.00, 1.2 M tokens, 312 answers");
    spending.unpriced = true;
    assert_string_equal(run_words_spent(arena, &run, &spending),
                        "not priced, 1.2 M tokens, 312 answers");
    spending.micro_dollars = 1230000;
    assert_string_equal(run_words_spent(arena, &run, &spending),
                        "at least $1.23: not all is priced, 1.2 M tokens, 312 answers");
    spending.unpriced = false;
    spending.cached_tokens = 800000;
    assert_string_equal(run_words_spent(arena, &run, &spending),
                        "$1.23, 1.2 M tokens (800 k of them cached), 312 answers");
    spending.saved_micro_dollars = 420000;
    assert_string_equal(
        run_words_spent(arena, &run, &spending),
        "$1.23, 1.2 M tokens (800 k of them cached, which saved $0.42), 312 answers");
    spending.cached_tokens = 0;
    spending.lost = 2;
    spending.lost_tokens = 3000;
    spending.lost_micro_dollars = 30000;
    spending.unpriced = false;
    assert_string_equal(run_words_spent(arena, &run, &spending),
                        "$1.23, 1.2 M tokens, 310 answers ($0.03, 3000 tokens of it reserved for 2 "
                        "requests with an unknown outcome)");
    spending.lost = 0;
    spending.doubted = 21;
    spending.doubt_micro_dollars = 190000;
    assert_string_equal(
        run_words_spent(arena, &run, &spending),
        "$1.23, 1.2 M tokens, 312 answers; up to $0.19 more: 21 answers did not say "
        "what is billed, for reasoning or else");
    assert_null(run_words_spent(arena, &run, &(struct spending){0}));
    arena_free(arena);
}

/* A line a model, and one for each cause, by name. */
static void what_became_of_requests_is_said(void **state)
{
    struct arena *arena = arena_new();
    struct run_record run = record_of("done", "");
    const char **lines;
    (void)state;
    setenv("TZ", "UTC", 1);
    run.asked =
        "{\"list\": [{\"name\": \"a\", \"asked\": 9, \"answered\": 5, \"failed\": 4, \"cached\": "
        "1, "
        "\"moved\": 2, \"micro_dollars\": 1500000, \"causes\": ["
        "{\"state\": \"breaker open\", \"times\": 2, \"since_ms\": 0, \"until_ms\": 7200000, "
        "\"total_ms\": 4200000, \"reason\": \"HTTP 503\"},"
        "{\"state\": \"failed\", \"times\": 1, \"since_ms\": 60000, \"reason\": \"reset\"}]},"
        "{\"name\": \"b\", \"asked\": 1, \"causes\": [{\"state\": \"parked\", \"times\": 1, "
        "\"since_ms\": 60000, \"until_ms\": 0, \"reason\": \"HTTP 429\"}]}]}";
    static const char *const expected[] = {
        "a: 9 asked, 5 answered, 4 failed, 1 answered before, 2 asked of others, $1.50",
        "a: breaker open 2 times, Thu 00:00 to Thu 02:00, 1:10:00 in all: HTTP 503",
        "a: 1 failure, Thu 00:01: reset",
        "b: 1 asked, 0 answered, $0.00",
        "b: parked since Thu 00:01: HTTP 429",
        "3 of their ideas named an unknown parent, and started from the best instead",
    };
    run.strange_parents = 3;
    assert_int_equal(run_words_asked(arena, &run, &lines), COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_string_equal(lines[i], expected[i]);
    run.asked = NULL; /* of an earlier version */
    run.strange_parents = 0;
    assert_int_equal(run_words_asked(arena, &run, &lines), 0);
    arena_free(arena);
}

static void the_log_s_end_has_news_and_endpoints(void **state)
{
    static const char text[] =
        "2026-11-21T07:00:00.000Z info run.start r1 matmul on cpu\n"
        "2026-11-21T07:00:01.000Z debug task.move r1 x\n"
        "2026-11-21T07:00:02.000Z info candidate.move r1-c1 kept\n"
        "2026-11-21T07:00:03.000Z warn candidate.move r1-c2 a warning stays\n"
        "(3 lines were lost here: there was no room)\n"
        "2026-11-21T07:00:04.000Z warn provider.parked openai http://a until later\n"
        "2026-11-21T07:00:05.000Z warn provider.breaker_open openai http://ab 5 failures\n"
        "2026-11-21T07:00:05.000Z warn provider.broken openai http://c in an earlier log\n"
        "2026-11-21T07:00:06.000Z info provider.probe openai http://ab probe 1 failed\n"
        "2026-11-21T07:00:07.000Z info provider.open openai http://c goes on\n"
        "2026-11-21T07:00:07.000Z info provider.ready openai http://a goes on\n"
        "half a li";
    char path[] = "/tmp/test_log_tail.XXXXXX", clock[32];
    struct arena *arena = arena_new();
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    int fd = mkstemp(path);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    struct log_tail tail = log_tail_read(arena, path, 100);
    assert_int_equal(tail.count, 8);
    assert_string_equal(tail.lines[0].kind, "run.start");
    assert_string_equal(tail.lines[1].text, "r1-c2 a warning stays");
    assert_int_equal(tail.provider_count, 1);
    assert_string_equal(tail.providers[0].text, "openai http://ab 5 failures");
    assert_string_equal(log_tail_clock(tail.lines[1].wall, clock), "07:00:03");
    tail = log_tail_read(arena, path, 2);
    assert_int_equal(tail.count, 2);
    assert_string_equal(tail.lines[1].kind, "provider.ready");
    unlink(path);
    assert_int_equal(log_tail_read(arena, path, 5).count, 0);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_have_shares_where_there_are_several),
        cmocka_unit_test(the_end_is_said_in_full),
        cmocka_unit_test(a_time_that_was_too_short_says_so),
        cmocka_unit_test(the_reference_is_called_as_its_person_calls_it),
        cmocka_unit_test(a_model_that_was_asked_is_told_in_few_words),
        cmocka_unit_test(a_budget_says_a_larger_one),
        cmocka_unit_test(a_mailbox_says_where),
        cmocka_unit_test(spending_has_its_caps),
        cmocka_unit_test(what_became_of_requests_is_said),
        cmocka_unit_test(the_log_s_end_has_news_and_endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
