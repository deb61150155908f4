/* Code and JSON out of a model's answer: always the same choice, never a guess. */
#include "check.h"

#include "agents/extract.h"

static const struct {
    const char *what, *answer, *code; /* code NULL: refused */
} rows[] = {
    {"one block", "Here:\n```c\nvoid kernel(void) {}\n```\nDone.", "void kernel(void) {}\n"},
    {"tildes", "~~~\nvoid kernel(void);\n~~~", "void kernel(void);\n"},
    {"crlf", "```c\r\nvoid kernel(void);\r\n```\r\n", "void kernel(void);\r\n"},
    {"last of several", "```c\nvoid kernel(int a);\n```\nbetter:\n```c\nvoid kernel(int b);\n```",
     "void kernel(int b);\n"},
    {"the one with the entry", "```c\nvoid kernel(void);\n```\nrun:\n```sh\nmake\n```",
     "void kernel(void);\n"},
    {"front matter before none", "```sh\nls\n```\n```c\n/*---\n---*/\nint f;\n```\n```\nx\n```",
     "/*---\n---*/\nint f;\n"},
    {"a longer name is not the entry", "```c\nvoid my_kernel(void);\n```\n```c\nint x;\n```",
     "int x;\n"},
    {"nested", "````md\n```c\nvoid kernel(void);\n```\n````", "```c\nvoid kernel(void);\n```\n"},
    {"nested with info inside", "```md\nsee\n```c\nint a;\n```\nkernel()\n```\n",
     "see\n```c\nint a;\n```\nkernel()\n"},
    {"inline is no fence", "Use ```kernel()``` so:\n```c\nvoid kernel(void);\n```",
     "void kernel(void);\n"},
    {"unclosed", "```c\nvoid kernel(void) {", NULL},
    {"closed, then cut off", "```c\nvoid kernel(void);\n```\n```c\nvoid ker",
     "void kernel(void);\n"},
    {"a command, then cut off", "```sh\nls\n```\n```c\nvoid kernel(void) {", NULL},
    {"bare source", "void kernel(void) { }\n", "void kernel(void) { }\n"},
    {"prose alone", "I cannot do that.", NULL},
    {"empty", "", NULL},
    {"replacement character", "```c\nvoid kernel(void); // \xEF\xBF\xBD\n```", NULL},
    {"latin-1", "```c\nvoid kernel(void); // \xE9\n```", NULL},
    {"0xFF", "```c\nvoid kernel(void); // \xFF\n```", NULL},
    {"utf-8 is text", "```c\nvoid kernel(void); // \xC3\xA9\n```",
     "void kernel(void); // \xC3\xA9\n"},
};

static void test_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *arena = arena_new();
        const char *code = NULL;
        size_t length = 0;
        struct err err = {0};
        int status = extract_code(arena, rows[i].answer, "kernel", &code, &length, &err);
        if ((status == 0) != (rows[i].code != NULL) ||
            (status == 0 && strcmp(code, rows[i].code) != 0))
            fail_msg("%s: got \"%s\"", rows[i].what, status == 0 ? code : err.message);
        if (status == 0)
            assert_int_equal(length, strlen(code));
        arena_free(arena);
    }
}

static const struct {
    const char *answer, *json;
} documents[] = {
    {"{\"a\": 1}", "{\"a\": 1}"},
    {"Sure!\n```json\n[{\"a\": \"}\"}]\n```", "[{\"a\": \"}\"}]"},
    {"see [1] and {x}: {\"a\": [1, {\"b\": \"\\\"]\"}]} end", "{\"a\": [1, {\"b\": \"\\\"]\"}]}"},
    {"{\"a\": [1, 2}", NULL},
    {"{\"a\": \"unclosed", NULL},
    {"no json", NULL},
    {"{}", "{}"},
};

static void test_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(documents); i++) {
        struct arena *arena = arena_new();
        const char *json = NULL;
        size_t length = 0;
        struct err err = {0};
        int status = extract_json(arena, documents[i].answer, &json, &length, &err);
        if (documents[i].json == NULL) {
            assert_int_equal(status, -1);
            assert_int_equal(err.code, ERR_NOT_FOUND);
        } else {
            assert_int_equal(status, 0);
            assert_string_equal(json, documents[i].json);
        }
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_code), cmocka_unit_test(test_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
