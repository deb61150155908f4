#include "check.h"

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
    "--cores|0-1|--ca-file|a-file|--language|both|"
    "--first-byte-limit|35s|--silence-limit|36s|--answer-limit|37s|"
    "--passage-tokens|38|--dry-run|--no-final|--no-lessons|--unfit|--unconfined";

static void a_run_keeps_what_it_is_told(void **state)
{
    static const char *const expected[] = {"\"language\":\"both\"",
                                           "\"branching\":11",
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
                                           "\"tune_strategy\":\"auto\"", /* a tune's */
                                           "\"stable\":false",
                                           "\"backend\":\"cpu\""};
    struct arena *arena = arena_new();
    (void)state;
    struct settings settings = settings_of(arena, COMMAND_RUN, all);
    const char *text = options_encode(&settings_table, &settings, arena);
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_contains(text, expected[i]);
    size_t members = 0;
    for (const char *at = text; (at = strstr(at, "\":")); at++)
        members++;
    assert_int_equal(members, COUNT(expected)); /* the problem is not set: none is forgotten here */
    arena_free(arena);
}

static int decode(struct arena *arena, struct settings *settings, const char *text, struct err *err)
{
    struct value *value;
    assert_int_equal(value_parse_json(arena, "t", text, strlen(text), &value, NULL), 0);
    return options_decode(&settings_table, settings, settings->origins, arena, value, err);
}

/* What a resume reads is what the run was told; its own command line stands over it. */
static void a_record_is_read_again(void **state)
{
    struct arena *arena = arena_new();
    (void)state;
    struct settings told = settings_of(arena, COMMAND_RUN, all);
    struct settings resumed = settings_of(arena, COMMAND_RESUME, "");
    const char *text = options_encode(&settings_table, &told, arena);
    assert_int_equal(decode(arena, &resumed, text, NULL), 0);
    assert_string_equal(options_encode(&settings_table, &resumed, arena), text);
    assert_int_equal(resumed.search.strategy, STRATEGY_ISLANDS);
    resumed = settings_of(arena, COMMAND_RESUME, "--rounds|40|--budget-usd|0.0000001|--launcher|x");
    assert_int_equal(decode(arena, &resumed, text, NULL), 0);
    assert_int_equal(decode(arena, &resumed, "{\"seed\":9007199254740993}", NULL), 0);
    assert_int_equal(resumed.search.rounds, 40);
    assert_int_equal(resumed.search.budget_micro_dollars, 1); /* however small, never none */
    assert_string_equal(resumed.search.launcher, "x");
    assert_int_equal(resumed.search.branching, 11);
    assert_int_equal(resumed.search.seed, INT64_C(9007199254740993));
    arena_free(arena);
}

static void a_damaged_record_is_refused(void **state)
{
    static const char *const texts[] = {"[]", "{\"rounds\": \"many\"}", "{\"final\": 1}",
                                        "{\"select\": true}", "{\"problem\": 3}"};
    struct arena *arena = arena_new();
    (void)state;
    struct settings settings = settings_of(arena, COMMAND_RESUME, "");
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct err err = {0};
        assert_int_not_equal(decode(arena, &settings, texts[i], &err), 0);
        assert_int_equal(err.code, ERR_CORRUPT);
    }
    assert_int_not_equal(decode(arena, &settings, "{\"strategy\": \"none\"}", NULL), 0);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_keeps_what_it_is_told),
        cmocka_unit_test(a_record_is_read_again),
        cmocka_unit_test(a_damaged_record_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
