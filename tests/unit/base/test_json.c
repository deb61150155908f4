#include "check.h"

#include "base/buf.h"
#include "base/fields.h"
#include "base/random.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static struct buf out;
static struct json json;

static int begin(void **state)
{
    (void)state;
    buf_init(&out, 1 << 20);
    json_init(&json, &out);
    return 0;
}

static int end(void **state)
{
    (void)state;
    buf_free(&out);
    return 0;
}

static void commas_and_levels(void **state)
{
    (void)state;
    json_object(&json);
    json_put_text(&json, "a", "x");
    json_put_int(&json, "b", INT64_MIN);
    json_key(&json, "c");
    json_array(&json);
    json_array(&json);
    json_array_end(&json);
    json_object(&json);
    json_object_end(&json);
    json_null(&json);
    json_int(&json, 5);
    json_raw(&json, "[1]");
    json_array_end(&json);
    json_put_real(&json, "d", 0.1);
    json_put_bool(&json, "e", true);
    json_put_text(&json, "f", NULL);
    json_key(&json, "g");
    json_value(&json, NULL);
    json_object_end(&json);
    assert_string_equal(buf_text(&out),
                        "{\"a\":\"x\",\"b\":-9223372036854775808,\"c\":[[],{},null,5,[1]],"
                        "\"d\":0.1,\"e\":true,\"f\":null,\"g\":null}");
    assert_int_equal(json.depth, 0);
}

/* Each level starts without a comma, also where one of the same depth came before. */
static void levels_forget_the_ones_before(void **state)
{
    (void)state;
    json_array(&json);
    for (int i = 0; i < 2; i++) {
        json_object(&json);
        json_put_int(&json, "a", i);
        json_put_int(&json, "b", i);
        json_object_end(&json);
    }
    json_array_end(&json);
    assert_string_equal(buf_text(&out), "[{\"a\":0,\"b\":0},{\"a\":1,\"b\":1}]");
}

static void trees_are_written_whole(void **state)
{
    (void)state;
    static const char *const text =
        "{\"z\":[1,-2.5,true,false,null,{}],\"a\\n\":{\"b\":\"\\\"\",\"c\":[]}}";
    struct arena *arena = arena_new();
    struct value *root;
    struct err err;
    assert_int_equal(value_parse_json(arena, "t", text, strlen(text), &root, &err), 0);
    json_value(&json, root);
    assert_string_equal(buf_text(&out), text);
    arena_free(arena);
}

static void many_levels(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        json_array(&json);
        json_int(&json, 1);
    }
    for (int i = 0; i < 60; i++) {
        json_array_end(&json);
        if (i < 59)
            json_int(&json, 2);
    }
    struct arena *arena = arena_new();
    struct value *root;
    struct err err;
    assert_int_equal(value_parse_json(arena, "t", buf_text(&out), out.length, &root, &err), 0);
    assert_int_equal(root->count, 3);

    buf_reset(&out); /* a tree of 60 levels below 10 of the writer's */
    json_init(&json, &out);
    for (int i = 0; i < 10; i++)
        json_array(&json);
    json_int(&json, 0);
    json_value(&json, root);
    json_int(&json, 9);
    for (int i = 0; i < 10; i++)
        json_array_end(&json);
    assert_int_equal(strncmp(buf_text(&out), "[[[[[[[[[[0,[1,[1,", 18), 0);
    assert_contains(buf_text(&out), ",2],2],9]]]]]]]]]]");
    arena_free(arena);
}

static void texts_are_escaped(void **state)
{
    (void)state;
#define BAD "\xef\xbf\xbd"
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"", "\"\""},
        {"a\"b\\c/d", "\"a\\\"b\\\\c/d\""},
        {"\n\r\t\b\f\x01\x1f\x7f", "\"\\n\\r\\t\\u0008\\u000c\\u0001\\u001f\x7f\""},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"\xff", "\"" BAD "\""},
        {"a\xc3", "\"a" BAD "\""},
        {"\xc3(", "\"" BAD "(\""},
        {"\xc0\x80", "\"" BAD BAD "\""},                 /* overlong */
        {"\xe0\x80\x80", "\"" BAD BAD BAD "\""},         /* overlong */
        {"\xed\xa0\x80", "\"" BAD BAD BAD "\""},         /* a surrogate */
        {"\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""}, /* above U+10FFFF */
        {"\xf5\x80", "\"" BAD BAD "\""},
        {"\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\""},
        {"\x80x", "\"" BAD "x\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        buf_reset(&out);
        json_text(&json, cases[i].text);
        assert_string_equal(buf_text(&out), cases[i].json);
    }
    buf_reset(&out);
    json_text_n(&json, "a\0b", 3);
    assert_string_equal(buf_text(&out), "\"a\\u0000b\"");
}

/* What this writer makes of any bytes, jansson reads. */
static void any_bytes_make_json(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 3);
    for (int i = 0; i < 3000; i++) {
        char bytes[40];
        size_t length = (size_t)random_below(&random, sizeof bytes);
        for (size_t k = 0; k < length; k++) {
            static const unsigned char odd[] = {0xc3, 0xe2, 0xed, 0xf0, 0xf4, 0x80, 0xbf, 0xa0, 1};
            bytes[k] = (char)(random_below(&random, 2) ? odd[random_below(&random, sizeof odd)]
                                                       : random_below(&random, 256));
            if (bytes[k] == 0)
                bytes[k] = 1;
        }
        buf_reset(&out);
        json_text_n(&json, bytes, length);
        struct arena *arena = arena_new();
        struct value *root;
        struct err err;
        if (value_parse_json(arena, "t", buf_text(&out), out.length, &root, &err) != 0)
            fail_msg("%s: %s", buf_text(&out), err.message);
        assert_int_equal(root->kind, VALUE_TEXT);
        arena_free(arena);
    }
}

static void reals_are_short_and_exact(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {0.0, "0"},
        {-0.0, "-0.0"},
        {1.0, "1"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1e22, "1e+22"},
        {5e-324, "5e-324"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {123456789012.5, "123456789012.5"},
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        buf_reset(&out);
        json_real(&json, cases[i].number);
        assert_string_equal(buf_text(&out), cases[i].text);
    }
    struct random random;
    random_init(&random, 5);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = random_next(&random);
        double number;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        buf_reset(&out);
        json_real(&json, number);
        double back = strtod(buf_text(&out), NULL);
        assert_memory_equal(&back, &number, sizeof number);
    }
}

static void roots_follow_without_commas(void **state)
{
    (void)state;
    json_int(&json, 1);
    buf_add_char(&out, '\n');
    json_object(&json);
    json_object_end(&json);
    assert_string_equal(buf_text(&out), "1\n{}");
}

struct fact {
    const char *name, *more;
    int64_t count;
    double share;
    bool known;
};

static const struct field fact_fields[] = {FIELD(fact, TEXT, name), FIELD(fact, JSON, more),
                                           FIELD(fact, INT, count), FIELD(fact, REAL, share),
                                           FIELD_AS(fact, BOOL, known, "is_known")};

static const struct value *parsed(struct arena *arena, const char *text)
{
    struct value *root;
    struct err err;
    assert_int_equal(value_parse_json(arena, "fact", text, strlen(text), &root, &err), 0);
    return root;
}

static void fields_go_both_ways(void **state)
{
    (void)state;
    static const char whole[] = "{\"name\":\"a\",\"more\":{\"b\":[1]},\"count\":7,"
                                "\"share\":0.5,\"is_known\":true}";
    static const char none[] =
        "{\"name\":\"\",\"more\":{},\"count\":0,\"share\":0,\"is_known\":false}";
    static const char *const refused[] = {"{\"name\":1}", "{\"name\":\"\",\"more\":[]}",
                                          "{\"name\":\"\",\"more\":{},\"count\":0.5}",
                                          "{\"name\":\"\",\"more\":{},\"count\":1,\"share\":true}"};
    ARENA_LOCAL(arena);
    struct err err;
    struct fact fact = {0}, strict = {0};
    fields_take(FIELDS(fact_fields), arena, parsed(arena, whole), &fact);
    assert_int_equal(fields_demand(FIELDS(fact_fields), arena, parsed(arena, whole), &strict, &err),
                     0);
    assert_string_equal(strict.name, fact.name);
    json_object(&json);
    fields_put(FIELDS(fact_fields), &strict, &json);
    json_object_end(&json);
    assert_string_equal(buf_text(&out), whole);
    buf_reset(&out);
    json_init(&json, &out);
    fields_take(FIELDS(fact_fields), arena,
                parsed(arena, "{\"name\":1,\"count\":\"7\",\"share\":null}"), &fact);
    json_object(&json);
    fields_put(FIELDS(fact_fields), &fact, &json);
    json_object_end(&json);
    assert_string_equal(buf_text(&out), none);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(
            fields_demand(FIELDS(fact_fields), arena, parsed(arena, refused[i]), &strict, &err),
            -1);
    assert_string_equal(err.message, "expected a number for \"share\"");
}

#define WITH_WRITER(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WRITER(commas_and_levels),         WITH_WRITER(levels_forget_the_ones_before),
        WITH_WRITER(trees_are_written_whole),   WITH_WRITER(many_levels),
        WITH_WRITER(texts_are_escaped),         WITH_WRITER(any_bytes_make_json),
        WITH_WRITER(reals_are_short_and_exact), WITH_WRITER(roots_follow_without_commas),
        WITH_WRITER(fields_go_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
