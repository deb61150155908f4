/* A record goes out and comes back the same; a broken one is refused with the field's name. */
#include "eval/data/evaluation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

static const struct evaluation sample = {
    .verdict = VERDICT_REJECTED,
    .stage = STAGE_CHECK,
    .reason = "C[3, 17]: got 0, expected \"1.25\"",
    .details = "two\nlines",
    .quarantined = true,
    .time_ns = {1.5e6, 1.4e6, 1.7e6, 31, 0},
    .speedup = {1.25, 1.125, 1.5, 31, 8},
    .baseline = "openblas",
    .spread = 0.004,
    .finding = FINDING_NOISY,
    .noise = "the baseline strays from itself by 60 %",
    .checks_passed = 17,
    .checks_total = 18,
    .timed_samples = 31,
    .dropped_samples = 2,
    .stage_ms = {0.5, 300, 12, 400, 0, 0},
    .identity = "00ff",
    .tune = "{\"BM\":64}",
    .metrics = NULL,
    .device = "{\"cpu\":{\"cores\":[0,1]}}",
    .versions = "{}",
};

static void write(const struct evaluation *evaluation, struct buf *text)
{
    struct json json;
    buf_reset(text);
    json_init(&json, text);
    evaluation_to_json(evaluation, &json);
    assert_null(strchr(buf_text(text), '\n')); /* one line, as the protocol has it */
}

static int read_back(struct arena *arena, const char *text, struct evaluation *evaluation,
                     struct err *err)
{
    struct value *value;
    if (value_parse_json(arena, "record", text, strlen(text), &value, err) != 0)
        return -1;
    return evaluation_from_value(arena, value, evaluation, err);
}

static void test_round_trip(void **state)
{
    struct arena *arena = arena_new();
    struct evaluation back = {0};
    struct buf first, second;
    struct err err;
    (void)state;
    buf_init(&first, 1 << 16);
    buf_init(&second, 1 << 16);
    write(&sample, &first);
    assert_non_null(strstr(buf_text(&first), "\"verdict\":\"rejected\""));
    assert_non_null(strstr(buf_text(&first), "\"checks\":{\"passed\":17,\"total\":18}"));
    assert_non_null(strstr(buf_text(&first), "\"hot_ns\":null"));
    if (read_back(arena, buf_text(&first), &back, &err) != 0)
        fail_msg("%s", err.message);
    assert_string_equal(back.details, sample.details);
    assert_true(back.time_ns.low == 1.4e6 && back.hot_ns.samples == 0);
    assert_string_equal(back.metrics, "{}");
    assert_int_equal(back.finding, FINDING_NOISY);
    assert_string_equal(back.noise, sample.noise);
    assert_non_null(strstr(buf_text(&first), "\"finding\":\"too noisy to say\""));
    assert_string_equal(back.tune, sample.tune);
    write(&back, &second);
    assert_string_equal(buf_text(&first), buf_text(&second));
    buf_free(&first);
    buf_free(&second);
    arena_free(arena);
}

/* Each field missing, and each of another type. */
static void test_broken(void **state)
{
    struct arena *arena = arena_new();
    struct evaluation back;
    struct value *value;
    struct buf text;
    struct err err;
    (void)state;
    buf_init(&text, 1 << 16);
    write(&sample, &text);
    assert_int_equal(value_parse_json(arena, "record", buf_text(&text), text.length, &value, &err),
                     0);
    for (size_t i = 0; i < value->count; i++) {
        struct value list = {.kind = VALUE_LIST}, *kept = value->items[i];
        const char *key = value->keys[i];
        value->items[i] = &list;
        assert_int_equal(evaluation_from_value(arena, value, &back, &err), -1);
        assert_int_equal(err.code, ERR_PROTOCOL);
        assert_non_null(strstr(err.message, key));
        value->items[i] = kept;
        value->keys[i] = "other";
        int older = strcmp(key, "finding") == 0 ? 0 : -1; /* versions before did not write it */
        assert_int_equal(evaluation_from_value(arena, value, &back, &err), older);
        value->keys[i] = key;
    }
    assert_int_equal(evaluation_from_value(arena, value, &back, &err), 0);
    assert_int_equal(evaluation_from_value(arena, NULL, &back, &err), -1);
    buf_free(&text);
    arena_free(arena);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(verdict_name(VERDICT_KERNEL), "kernel");
    assert_string_equal(stage_name(STAGE_SANITIZE), "sanitize");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_broken), cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
