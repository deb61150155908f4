#include "check.h"

#include "cli/search_settings.h"

static const char *encoded(struct arena *arena, const struct search_options *options)
{
    struct buf text;
    struct json json;
    buf_init(&text, 1 << 16);
    json_init(&json, &text);
    search_options_encode(options, &json);
    const char *copy = arena_strdup(arena, buf_text(&text));
    buf_free(&text);
    return copy;
}

/* Every option of a search, each with a value that nothing else has. */
static const char all[] =
    "--branching|11|--rounds|12|"
    "--implementations|13|--repairs|14|"
    "--beam|15|--islands|16|"
    "--migration|17|--lanes|18|"
    "--tuning|19|--requests|20|"
    "--select|0.21|--seed|22|"
    "--budget-time|23s|--budget-usd|2.4|"
    "--budget-evaluations|25|--budget-tokens|26|"
    "--target|2.7|--floor-share|0.28|"
    "--patience|29|--mailbox-wait|30ms|"
    "--disk-quota|31|--disk-floor|32|"
    "--call-timeout|33ms|--time-budget|34ms|"
    "--strategy|islands|--launcher|launch it|"
    "--python|a-python|--baseline|a-baseline|"
    "--cores|0-1|--ca-file|a-file|"
    "--first-byte-limit|35s|--silence-limit|36s|--answer-limit|37s|"
    "--passage-tokens|38|--dry-run|--no-final|--no-lessons|--unfit|--unconfined";

static void every_option_reaches_the_search(void **state)
{
    static const char *const expected[] = {"\"branching\":11",
                                           "\"rounds\":12",
                                           "\"implementations\":13",
                                           "\"repairs\":14",
                                           "\"beam\":15",
                                           "\"islands\":16",
                                           "\"migration\":17",
                                           "\"lanes\":18",
                                           "\"tuning\":19",
                                           "\"requests\":20",
                                           "\"select\":0.21",
                                           "\"seed\":22",
                                           "\"budget_ms\":23000",
                                           "\"budget_micro_dollars\":2400000",
                                           "\"budget_evaluations\":25",
                                           "\"budget_tokens\":26",
                                           "\"target\":2.7",
                                           "\"floor_share\":0.28",
                                           "\"patience\":29",
                                           "\"mailbox_ms\":30",
                                           "\"disk_quota\":31",
                                           "\"disk_floor\":32",
                                           "\"first_byte_ms\":35000",
                                           "\"silence_ms\":36000",
                                           "\"answer_ms\":37000",
                                           "\"call_timeout_ms\":33",
                                           "\"time_budget_ms\":34",
                                           "\"strategy\":\"islands\"",
                                           "\"launcher\":\"launch it\"",
                                           "\"python\":\"a-python\"",
                                           "\"baseline\":\"a-baseline\"",
                                           "\"cores\":\"0-1\"",
                                           "\"ca_file\":\"a-file\"",
                                           "\"dry_run\":true",
                                           "\"final\":false",
                                           "\"unfit\":true",
                                           "\"unconfined\":true",
                                           "\"lessons\":false",
                                           "\"passage_tokens\":38",
                                           "\"backend\":\"cpu\""};
    struct arena *arena = arena_new();
    struct search_options options = {0};
    (void)state;
    struct settings settings = settings_of(arena, COMMAND_RUN, all);
    search_settings_apply(&settings, false, &options);
    const char *text = encoded(arena, &options);
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_contains(text, expected[i]);
    size_t members = 0;
    for (const char *at = text; (at = strstr(at, "\":")); at++)
        members++;
    assert_int_equal(members, COUNT(expected)); /* the problem is not set: none is forgotten here */
    arena_free(arena);
}

/* A resume: what the command line does not say stays as it was recorded. */
static void only_what_is_given_overrides(void **state)
{
    const char *given = "--rounds|40|--budget-usd|0.0000001|--launcher|x";
    struct arena *arena = arena_new();
    struct search_options options = {.rounds = 7, .branching = 3, .select = 0.5, .seed = 9};
    (void)state;
    struct settings settings = settings_of(arena, COMMAND_RESUME, given);
    search_settings_apply(&settings, true, &options);
    assert_int_equal(options.rounds, 40);
    assert_int_equal(options.budget_micro_dollars, 1); /* a cap, however small, is never none */
    assert_string_equal(options.launcher, "x");
    assert_int_equal(options.branching, 3);
    assert_int_equal(options.seed, 9);
    assert_true(options.select > 0.49 && options.select < 0.51);
    assert_int_equal(options.disk_floor, 0);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_reaches_the_search),
        cmocka_unit_test(only_what_is_given_overrides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
