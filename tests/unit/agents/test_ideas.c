/* Ideas as models write them, and what they are told where nobody can read them. */
#include "check.h"

#include "agents/ideas/ideas.h"

static size_t parse(const char *text, struct idea *ideas, size_t most, struct arena *arena,
                    struct err *err)
{
    size_t count = 0;
    *err = (struct err){ERR_NONE, ""};
    return ideas_parse(arena, text, ideas, most, &count, err) == 0 ? count : 0;
}

static void test_parse(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct idea ideas[4];
    struct err err;
    assert_int_equal(
        parse("Sure:\n```json\n{\"ideas\": [{\"title\": \" Pack \\n B \", \"category\": \"Memory\","
              " \"why\": \"L1\", \"expected\": 1.3, \"parent\": \"r1-c2\"}]}\n```",
              ideas, 4, arena, &err),
        1);
    assert_string_equal(ideas[0].title, "Pack B");
    assert_string_equal(ideas[0].category, "memory");
    assert_string_equal(ideas[0].parent, "r1-c2");
    assert_true(ideas[0].expected > 1.29 && ideas[0].expected < 1.31);
    assert_int_equal(parse("[{\"title\":\"a\\u009b31m\\u202eb\\u2029c\"}]", ideas, 4, arena, &err),
                     1);
    assert_string_equal(ideas[0].title, "a 31m b c"); /* nothing that paints a terminal */
    /* a bare list; the same title twice; no title; odd types; more than asked for */
    assert_int_equal(parse("[{\"title\":\"a-b\"},{\"title\":\"A  B!\"},{\"why\":\"x\"},7,"
                           "{\"title\":\"c\",\"category\":\"magic\",\"expected\":\"much\"},"
                           "{\"title\":\"d\",\"expected\":-1},{\"title\":\"e\"},{\"title\":\"f\"}]",
                           ideas, 4, arena, &err),
                     4);
    assert_string_equal(ideas[1].title, "c");
    assert_string_equal(ideas[1].category, "compute");
    assert_true(ideas[1].expected == 0 && ideas[2].expected == 0);
    assert_string_equal(ideas[3].title, "e");
    static const char *const bad[] = {"",
                                      "no",
                                      "{\"ideas\": []}",
                                      "{\"ideas\": \"x\"}",
                                      "{\"title\": \"a\"}",
                                      "{\"ideas\": [{\"title\": \"\"}]}",
                                      "{\"ideas\": [{\"title\": \"cut"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(parse(bad[i], ideas, 4, arena, &err), 0);
        assert_true(err.code == ERR_PARSE || err.code == ERR_NOT_FOUND);
    }
    arena_free(arena);
}

/* What was wrong goes back to the model word for word: it must say what, and where. */
static void test_complaints(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *complaint;
    } rows[] = {
        {"", "no JSON object or list found in the answer"},
        {"I have no ideas.", "no JSON object or list found in the answer"},
        {"So:\n\n{\"ideas\": [{\"title\": \"cut",
         "the JSON that opens in line 3 of the answer never closes: it is cut off, or its brackets "
         "and quotes do not match"},
        {"{\"ideas\": [{\"title\": \"a\", \"why\": \"b\"}, {\"title\": \"cut",
         "the JSON never closes: it is cut off, or its brackets and quotes do not match"},
        {"{\"ideas\": []}", "the list of ideas is empty"},
        {"[]", "the list of ideas is empty"},
        {"{\"ideas\": \"x\"}", "\"ideas\" is a text, where a list of objects was expected"},
        {"{\"ideas\": {\"a\": 1}}", "\"ideas\" is an object, where a list of objects was expected"},
        {"{}", "the object is empty, where {\"ideas\": [...]} was expected"},
        {"{\"title\": \"a\"}", "the object has no key \"ideas\" (its first key is \"title\"); "
                               "expected {\"ideas\": [{\"title\": ...}, ...]}"},
        {"{\"ideas\": [\"Pack B\"]}",
         "item 1 of 1 is a text, where an object with a \"title\" was expected"},
        {"[{\"name\": \"a\"}, {\"name\": \"b\"}]", "none of the 2 items has a \"title\""},
        {"[{\"title\": 7}]", "the \"title\" of item 1 is a number, where a text was expected"},
        {"{\"ideas\": [{\"title\": \" \\n\"}]}", "the \"title\" of item 1 is empty"},
        {"{\"ideas\": [\n{\"title\": \"a\",}]}",
         "line:2: expected JSON: string or '}' expected near "
         "'}'"},
        {"see {\"a\": 1} and {\"ideas\": [{\"wrong\": true}]}",
         "none of the 1 items has a \"title\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *arena = arena_new();
        struct idea ideas[4];
        struct err err;
        assert_int_equal(parse(rows[i].answer, ideas, 4, arena, &err), 0);
        assert_string_equal(err.message, rows[i].complaint);
        assert_true(err.code == ERR_PARSE || err.code == ERR_NOT_FOUND);
        arena_free(arena);
    }
}

/* What is accepted, one thing a row. */
static void test_tolerance(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        double expected;
    } rows[] = {
        {"[{\"title\": \"a\", \"expected\": 1.5}]", 1.5},
        {"[{\"title\": \"a\", \"expected\": 2}]", 2},
        {"[{\"title\": \"a\", \"expected\": \"1.5\"}]", 1.5},
        {"[{\"title\": \"a\", \"expected\": \"1.5x\"}]", 1.5},
        {"[{\"title\": \"a\", \"expected\": \"x\"}]", 0},
        {"[{\"title\": \"a\", \"expected\": \"\"}]", 0},
        {"[{\"title\": \"a\", \"expected\": \"1,5\"}]", 0},
        {"[{\"title\": \"a\", \"expected\": \"nan\"}]", 0},
        {"[{\"title\": \"a\", \"expected\": 1e308}]", 0},
        {"[{\"title\": \"a\", \"expected\": [1.5]}]", 0},
        {"[{\"title\": \"a\", \"extra\": {\"b\": []}, \"expected\": 3}]", 3},
        {"arr[\"x\"], then {\"ideas\": [{\"title\": \"a\", \"expected\": 4}]}", 4},
        {"draft {\"ideas\": []}, final:\n~~~json\n{\"ideas\": [{\"title\": \"a\", \"expected\": "
         "5}]}"
         "\n~~~\nGood luck!",
         5},
        {"{\"thought\": \"{\\\"ideas\\\": [\", \"ideas\": [{\"title\": \"a\", \"expected\": 6}]}",
         6},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *arena = arena_new();
        struct idea ideas[4];
        struct err err;
        if (parse(rows[i].answer, ideas, 4, arena, &err) != 1)
            fail_msg("%s: %s", rows[i].answer, err.message);
        assert_string_equal(ideas[0].title, "a");
        assert_true(ideas[0].expected == rows[i].expected);
        arena_free(arena);
    }
}

/* A model cuts a pair in two now and then: the other ideas of that answer were paid for. */
static void test_surrogates(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "{\"ideas\": [{\"title\": \"a \\ud83d tile\"}, {\"title\": \"b\"}]}",
        "{\"ideas\": [{\"title\": \"a \\uDE00 tile\"}, {\"title\": \"b\"}]}",
        "{\"ideas\": [{\"title\": \"a \\ud83d\\ud83d\\ude00\"}, {\"title\": \"b\"}]}",
        "{\"ideas\": [{\"title\": \"a \\ud83d\\ude00 \\\\ud83d\"}, {\"title\": \"b\"}]}"};
    static const char *const titles[] = {"a \xEF\xBF\xBD tile", "a \xEF\xBF\xBD tile",
                                         "a \xEF\xBF\xBD\xF0\x9F\x98\x80",
                                         "a \xF0\x9F\x98\x80 \\ud83d"};
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct arena *arena = arena_new();
        struct idea ideas[4];
        struct err err;
        if (parse(answers[i], ideas, 4, arena, &err) != 2)
            fail_msg("%s: %s", answers[i], err.message);
        assert_string_equal(ideas[0].title, titles[i]);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse), cmocka_unit_test(test_complaints),
        cmocka_unit_test(test_tolerance), cmocka_unit_test(test_surrogates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
