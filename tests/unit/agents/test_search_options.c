/* What a resume reads is what the run was told. */
#include "check.h"

#include "agents/search/options.h"

#include <string.h>

static struct search_options sample(void)
{
    return (struct search_options){.problem = "matmul",
                                   .backend = "cpu",
                                   .cores = "0-3",
                                   .branching = 5,
                                   .rounds = 40,
                                   .implementations = 3,
                                   .repairs = 2,
                                   .strategy = STRATEGY_ISLANDS,
                                   .islands = 4,
                                   .migration = 3,
                                   .select = 0.1,
                                   .seed = INT64_C(9007199254740993),
                                   .budget_micro_dollars = 5000000,
                                   .floor_share = 0.95,
                                   .final = true};
}

static const char *text_of(struct arena *arena, const struct search_options *options)
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

static void test_round_trip(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    const struct search_options options = sample();
    struct search_options read = {.python = "kept"};
    const char *text = text_of(arena, &options);
    struct value *value;
    assert_int_equal(value_parse_json(arena, "t", text, strlen(text), &value, NULL), 0);
    assert_int_equal(search_options_decode(arena, value, &read, NULL), 0);
    assert_string_equal(read.python, "kept"); /* what the record does not say stays */
    read.python = NULL;
    assert_string_equal(text_of(arena, &read), text);
    assert_int_equal(read.seed, options.seed);
    assert_true(read.select == options.select);
    assert_int_equal(read.strategy, STRATEGY_ISLANDS);
    arena_free(arena);
}

static void test_damaged(void **state)
{
    (void)state;
    static const char *const texts[] = {"[]", "{\"rounds\": \"many\"}", "{\"final\": 1}",
                                        "{\"problem\": 3}"};
    struct arena *arena = arena_new();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct search_options read = {0};
        struct value *value;
        struct err err = {0};
        assert_int_equal(value_parse_json(arena, "t", texts[i], strlen(texts[i]), &value, &err), 0);
        assert_int_not_equal(search_options_decode(arena, value, &read, &err), 0);
        assert_int_equal(err.code, ERR_CORRUPT);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests_name("search_options", tests, NULL, NULL);
}
