#include "check.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/value.h"

#include <math.h>

static struct arena *arena;

static int begin(void **state)
{
    (void)state;
    arena = arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static struct value *yaml(const char *text)
{
    struct err err;
    struct value *root;
    if (value_parse_yaml(arena, "t", text, strlen(text), &root, &err) != 0)
        fail_msg("%s: %s", text, err.message);
    return root;
}

static struct value *json(const char *text)
{
    struct err err;
    struct value *root;
    if (value_parse_json(arena, "t", text, strlen(text), &root, &err) != 0)
        fail_msg("%s: %s", text, err.message);
    return root;
}

/* Each scalar as YAML, and what it is as JSON. */
static const struct {
    const char *text;
    enum value_kind kind;
    const char *json;
} scalar_cases[] = {
    {"null", VALUE_NULL, "null"},
    {"~", VALUE_NULL, "null"},
    {"", VALUE_NULL, "null"},
    {"true", VALUE_BOOL, "true"},
    {"True", VALUE_BOOL, "true"},
    {"false", VALUE_BOOL, "false"},
    {"yes", VALUE_TEXT, "\"yes\""},
    {"no", VALUE_TEXT, "\"no\""},
    {"on", VALUE_TEXT, "\"on\""},
    {"tRue", VALUE_TEXT, "\"tRue\""},
    {"\"true\"", VALUE_TEXT, "\"true\""},
    {"'12'", VALUE_TEXT, "\"12\""},
    {"!!str 12", VALUE_TEXT, "\"12\""},
    {"0", VALUE_INT, "0"},
    {"-7", VALUE_INT, "-7"},
    {"+7", VALUE_INT, "7"},
    {"007", VALUE_INT, "7"},
    {"0x1F", VALUE_INT, "31"},
    {"-0x10", VALUE_INT, "-16"},
    {"0x", VALUE_TEXT, "\"0x\""},
    {"0o17", VALUE_TEXT, "\"0o17\""},
    {"1_000", VALUE_TEXT, "\"1_000\""},
    {"9223372036854775807", VALUE_INT, "9223372036854775807"},
    {"-9223372036854775808", VALUE_INT, "-9223372036854775808"},
    {"1.5", VALUE_REAL, "1.5"},
    {"1e-5", VALUE_REAL, "1e-05"},
    {"-.5", VALUE_REAL, "-0.5"},
    {"3.", VALUE_REAL, "3"},
    {"1E+3", VALUE_REAL, "1000"},
    {"1e-400", VALUE_REAL, "0"},
    {".", VALUE_TEXT, "\".\""},
    {"1.2.3", VALUE_TEXT, "\"1.2.3\""},
    {"1e", VALUE_TEXT, "\"1e\""},
    {"e5", VALUE_TEXT, "\"e5\""},
    {"+", VALUE_TEXT, "\"+\""},
    {".inf", VALUE_REAL, "null"},
    {"-.INF", VALUE_REAL, "null"},
    {".nan", VALUE_REAL, "null"},
    {"inf", VALUE_TEXT, "\"inf\""},
    {"nan", VALUE_TEXT, "\"nan\""},
    {"12:30:45", VALUE_TEXT, "\"12:30:45\""},
    {"2*M*N*K", VALUE_TEXT, "\"2*M*N*K\""},
};

static void plain_scalars_are_resolved(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(scalar_cases); i++) {
        struct buf line, out;
        buf_init(&line, 100);
        buf_init(&out, 100);
        buf_addf(&line, "key: %s", scalar_cases[i].text);
        const struct value *value = value_get(yaml(buf_text(&line)), "key");
        assert_non_null(value);
        if (value->kind != scalar_cases[i].kind)
            fail_msg("\"%s\" is of kind %d", scalar_cases[i].text, (int)value->kind);
        assert_int_equal(value->line, 1);
        struct json writer;
        json_init(&writer, &out);
        json_value(&writer, value);
        assert_string_equal(buf_text(&out), scalar_cases[i].json);
        if (scalar_cases[i].text[0] != '"' && scalar_cases[i].text[0] != '\'' &&
            scalar_cases[i].text[0] != '!')
            assert_string_equal(value->text, scalar_cases[i].text); /* the raw scalar */
        assert_int_equal(value->length, strlen(value->text));
        buf_free(&line);
        buf_free(&out);
    }
    assert_true(isinf(yaml("-.inf")->real) && yaml("-.inf")->real < 0);
    assert_true(isnan(yaml(".nan")->real));
    assert_true(yaml("12")->real == 12.0);
}

static const char *const spec = "# a problem\n"
                                "name: matmul\n"
                                "dims: {M: 512, N: 64}\n"
                                "inputs:\n"
                                "  A:\n"
                                "    shape: [M, K]\n"
                                "check:\n"
                                "  - {M: 1}\n"
                                "  - M: 127\n"
                                "tolerance: {rtol: 1e-5, exact: false, none: }\n";

static void trees_know_their_lines(void **state)
{
    (void)state;
    /* As it is pasted: a byte order mark, spaces that do not break, what takes no room. */
    struct value *pasted = yaml("\xEF\xBB\xBFwide:\n\xC2\xA0 b\xE2\x80\x8B: [7]\n");
    const struct value *inner = value_get(pasted, "wide");
    assert_non_null(value_get(inner, "b"));
    assert_int_equal(value_get(inner, "b")->items[0]->integer, 7);
    const struct value *root = yaml(spec);
    assert_int_equal(root->kind, VALUE_MAP);
    assert_int_equal(root->count, 5);
    assert_string_equal(root->keys[2], "inputs");
    assert_int_equal(root->key_lines[2], 4);
    assert_int_equal(root->items[2]->line, 5);
    assert_int_equal(value_at(root, "inputs.A.shape")->line, 6);
    const struct value *check = value_get(root, "check");
    assert_int_equal(check->kind, VALUE_LIST);
    assert_int_equal(check->items[1]->line, 9);
    assert_int_equal(value_int(check->items[1], "M", 0), 127);
}

static void look_ups_fall_back(void **state)
{
    (void)state;
    const struct value *root = yaml(spec);
    assert_string_equal(value_text(root, "name", "?"), "matmul");
    assert_string_equal(value_text(root, "names", "?"), "?");
    assert_string_equal(value_text(root, "nam", "?"), "?");
    assert_string_equal(value_text(root, "dims", "?"), "?");
    assert_int_equal(value_int(value_get(root, "dims"), "M", 1), 512);
    assert_int_equal(value_int(root, "name", 1), 1);
    const struct value *tolerance = value_get(root, "tolerance");
    assert_true(value_real(tolerance, "rtol", 0) == 1e-5);
    assert_true(value_real(value_get(root, "dims"), "N", 0) == 64.0);
    assert_false(value_bool(tolerance, "exact", true));
    assert_true(value_bool(tolerance, "rtol", true));
    assert_int_equal(value_get(tolerance, "none")->kind, VALUE_NULL);
    assert_null(value_get(NULL, "x"));
    assert_null(value_get(root->items[0], "x"));
    assert_null(value_at(root, "inputs.A.shape.x"));
    assert_null(value_at(root, "inputs..A"));
    assert_null(value_at(NULL, "a.b"));
}

static void check_refused(int (*parse)(struct arena *, const char *, const char *, size_t,
                                       struct value **, struct err *),
                          const char *text, size_t length, const char *message)
{
    struct err err = {0};
    struct value *root = (struct value *)1;
    if (parse(arena, "t.x", text, length, &root, &err) == 0)
        fail_msg("\"%s\" is not refused", text);
    assert_ptr_equal(root, (struct value *)1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_contains(err.message, message);
}

static void yaml_errors_name_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a: 1\nb: [1,\n", "t.x:2: expected YAML: did not find"},
        {"a: {x: 1,\n  y: 2\n\n# c\nb: {y: 2}\n", "t.x:2: expected YAML: did not find"},
        {"a: [1, 2\n\n", "t.x:1: expected YAML: did not find"},
        {"a: [1 2]\nb: {c: 1 d: 2}\n", "t.x:2: expected YAML"},
        {"a: 1\ndims\nb: 3\n", "t.x:2: expected YAML: could not find expected ':'"},
        {"a: 1\nb: 'x\nc: 3\n", "t.x:2: expected YAML: found unexpected end of stream"},
        {"a:\n  b: 1\n c: 2\n", "t.x:3: expected YAML: did not find expected key"},
        {"a: 1\nb: 2\na: 3\n", "t.x:3: expected each key once, not \"a\" again (line 1)"},
        {"{a: 1, b: {c: 1, c: 2}}", "t.x:1: expected each key once, not \"c\""},
        {"a: &x 1\nb: 2\n", "t.x:1: expected a value, not an anchor"},
        {"a: 1\nb: &x [1]\n", "t.x:2: expected a value, not an anchor"},
        {"b: &x {a: 1}\n", "t.x:1: expected a value, not an anchor"},
        {"&x a: 1\n", "t.x:1: expected a value, not an anchor"},
        {"a:\n  - *x\n", "t.x:2: expected a value, not an alias"},
        {"a: 1\n*x : 2\n", "t.x:2: expected a value, not an alias"},
        {"a: !!int 1", "t.x:1: expected no tag, not \"tag:yaml.org,2002:int\""},
        {"!!str a: 1", "t.x:1: expected no tag, not \"tag:yaml.org,2002:str\""},
        {"a: !mine [1]", "t.x:1: expected no tag, not \"!mine\""},
        {"[1, 2]: 3", "t.x:1: expected a key, not a list or a map"},
        {"? {a: b}\n: 3", "t.x:1: expected a key, not a list or a map"},
        {"a: 1\n---\nb: 2\n", "t.x:2: expected one document"},
        {"a: 1\nb: 9223372036854775808\n",
         "t.x:2: expected a number of 64 bits, not \"9223372036854775808\""},
        {"a: -1e999\n", "t.x:1: expected a number of 64 bits"},
        {"a: \"x\\0y\"", "t.x:1: expected text without a NUL byte"},
        {"a: 1\n\tb: 2\n", "t.x:2: expected YAML"},
        {"a: 1\nb: \xff\n", "t.x:2: expected YAML"},
        {"%YAML 3.0\n---\na", "t.x:1: expected YAML"},
        {"a: 'x", "t.x:1: expected YAML"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_refused(value_parse_yaml, cases[i].text, strlen(cases[i].text), cases[i].message);
    check_refused(value_parse_yaml, "a: 1\nb: x\0y", 11, "t.x:2: expected");
}

static void json_errors_name_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t.x:1: expected JSON"},
        {"{\n\"a\": }", "t.x:2: expected JSON: unexpected token near '}'"},
        {"{\"a\": 1,\n \"a\": 2}", "t.x:2: expected JSON: duplicate object key"},
        {"[1] 2", "t.x:1: expected JSON: end of file expected"},
        {"9223372036854775808", "t.x:1: expected JSON: too big integer"},
        {"1e999", "t.x:1: expected JSON: real number overflow"},
        {"\"\xff\"", "t.x:1: expected JSON"},
        {"\"\\u0000\"", "t.x:1: expected JSON"},
        {"NaN", "t.x:1: expected JSON"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_refused(value_parse_json, cases[i].text, strlen(cases[i].text), cases[i].message);
}

/* `depth` lists in one another. */
static char *nested(size_t depth)
{
    char *text = (char *)arena_alloc(arena, 2 * depth + 1);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    return text;
}

static void depth_and_size_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(yaml(nested(64))->kind, VALUE_LIST);
    assert_int_equal(json(nested(64))->kind, VALUE_LIST);
    static const size_t depths[] = {65, 500, 1500, 100000};
    for (size_t i = 0; i < COUNT(depths); i++) {
        const char *text = nested(depths[i]);
        check_refused(value_parse_yaml, text, 2 * depths[i], "t.x:1: expected at most 64 levels");
        check_refused(value_parse_json, text, 2 * depths[i], "t.x");
    }
    struct buf many;
    buf_init(&many, 10000000);
    buf_add_char(&many, '[');
    for (int i = 0; i < 1000000; i++)
        buf_add_text(&many, i == 0 ? "1" : ",1");
    buf_add_char(&many, ']');
    check_refused(value_parse_json, buf_text(&many), many.length,
                  "expected at most 1000000 values");
    check_refused(value_parse_yaml, buf_text(&many), many.length,
                  "expected at most 1000000 values");
    buf_free(&many);
}

/* Sorting, not comparing each with each, is what makes this end. */
static void many_keys_are_checked_soon(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 10000000);
    for (int i = 0; i < 50000; i++)
        buf_addf(&text, "key%d: 1\n", i);
    struct err err;
    struct value *root;
    assert_int_equal(value_parse_yaml(arena, "t", buf_text(&text), text.length, &root, &err), 0);
    assert_int_equal(root->count, 50000);
    assert_string_equal(root->keys[49999], "key49999");
    buf_add_text(&text, "key7: 2\n");
    check_refused(value_parse_yaml, buf_text(&text), text.length,
                  "t.x:50001: expected each key once, not \"key7\" again (line 8)");
    buf_free(&text);
}

static void odd_documents_are_read(void **state)
{
    (void)state;
    assert_int_equal(yaml("")->kind, VALUE_NULL);
    assert_int_equal(yaml("# nothing\n")->kind, VALUE_NULL);
    assert_int_equal(yaml("---\n...\n")->kind, VALUE_NULL);
    assert_int_equal(yaml("[]")->count, 0);
    assert_int_equal(yaml("{}")->count, 0);
    assert_string_equal(yaml("\xef\xbb\xbf"
                             "a: \xc3\xa9")
                            ->items[0]
                            ->text,
                        "\xc3\xa9");
    assert_string_equal(yaml("a: |\n  one\n  two\n")->items[0]->text, "one\ntwo\n");
    assert_string_equal(yaml("a: |\n  12\n")->items[0]->text, "12\n");
    assert_string_equal(yaml("12: x")->keys[0], "12");
    assert_string_equal(yaml("a: ceil_div(N, BN), 1")->items[0]->text, "ceil_div(N, BN), 1");
    assert_int_equal(json(" 12 ")->integer, 12);
    assert_int_equal(json("\"x\"")->kind, VALUE_TEXT);
    assert_int_equal(json("null")->kind, VALUE_NULL);
    const struct value *object = json("{\"z\": 1, \"a\": [true, -0.5, {}]}");
    assert_string_equal(object->keys[0], "z");
    assert_null(object->key_lines);
    assert_int_equal(object->items[1]->items[0]->boolean, true);
    assert_true(object->items[1]->items[1]->real == -0.5);
    assert_int_equal(object->line, 0);
}

static void keys_outside_the_list_are_refused(void **state)
{
    (void)state;
    static const char *const allowed[] = {"name", "dims", "inputs", "check", "tolerance", NULL};
    static const char *const fewer[] = {"name", "dims", "input", "check", "tolerance", NULL};
    static const char *const others[] = {"alpha", "beta", NULL};
    struct err err;
    assert_int_equal(value_check_keys(yaml(spec), "s.yaml", allowed, &err), 0);
    assert_int_equal(value_check_keys(yaml(spec), "s.yaml", fewer, &err), -1);
    assert_string_equal(err.message, "s.yaml:4: expected the key \"input\", not \"inputs\"");
    assert_int_equal(value_check_keys(yaml(spec), "s.yaml", others, &err), -1);
    assert_string_equal(err.message,
                        "s.yaml:2: expected one of the keys alpha, beta, not \"name\"");
    assert_int_equal(value_check_keys(yaml("\n[1]"), "s.yaml", allowed, &err), -1);
    assert_string_equal(err.message, "s.yaml:2: expected a map");
    assert_int_equal(value_check_keys(NULL, "s.yaml", allowed, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars_are_resolved),
        cmocka_unit_test(trees_know_their_lines),
        cmocka_unit_test(look_ups_fall_back),
        cmocka_unit_test(yaml_errors_name_the_line),
        cmocka_unit_test(json_errors_name_the_line),
        cmocka_unit_test(depth_and_size_are_bounded),
        cmocka_unit_test(many_keys_are_checked_soon),
        cmocka_unit_test(odd_documents_are_read),
        cmocka_unit_test(keys_outside_the_list_are_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
