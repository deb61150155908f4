/* Code and JSON out of a model's answer: always the same choice, never a guess. */
#include "check.h"

#include "agents/ideas/extract.h"

static const struct {
    const char *what, *answer, *code; /* code NULL: refused */
} rows[] = {
    {"one block", "Here:\n```c\nvoid kernel(void) {}\n```\nDone.", "void kernel(void) {}\n"},
    {"tildes", "~~~\nvoid kernel(void);\n~~~", "void kernel(void);\n"},
    {"tildes around backticks", "~~~c `x`\nvoid kernel(void) {}\n```\n~~~",
     "void kernel(void) {}\n```\n"},
    {"crlf", "```c\r\nvoid kernel(void);\r\nint a;\r\n```\r\n", "void kernel(void);\nint a;\n"},
    {"attributes", "```{.c .numberLines startFrom=\"1\"}\nvoid kernel(void) {}\n```",
     "void kernel(void) {}\n"},
    {"a title", "```c title=\"kernel.c\"\nvoid kernel(void) {}\n``` \t\n",
     "void kernel(void) {}\n"},
    {"indented fences", "   ```c\nvoid kernel(void) {}\n   ```", "void kernel(void) {}\n"},
    {"in a list", "1. so:\n      ```c\n      void kernel(void) {}\n      ```",
     "      void kernel(void) {}\n"},
    {"text after", "```c\nvoid kernel(void) {}\n```\nIt calls kernel() { once.",
     "void kernel(void) {}\n"},
    {"last of several",
     "```c\nvoid kernel(int a) {}\n```\nbetter:\n```c\nvoid kernel(int b) {}\n```",
     "void kernel(int b) {}\n"},
    {"the one with the entry", "```c\nvoid kernel(void);\n```\nrun:\n```sh\nmake\n```",
     "void kernel(void);\n"},
    {"a definition before a call",
     "```c\nvoid kernel(int a)\n{\n}\n```\nCall it:\n```c\nkernel(1);\n```",
     "void kernel(int a)\n{\n}\n"},
    {"a comment before the body",
     "```c\nvoid kernel(void) /* ( */ // {\n{}\n```\n```\nkernel(1)\n```",
     "void kernel(void) /* ( */ // {\n{}\n"},
    {"front matter before none", "```sh\nls\n```\n```c\n/*---\n---*/\nint f;\n```\n```\nx\n```",
     "/*---\n---*/\nint f;\n"},
    {"a longer name is not the entry", "```c\nvoid my_kernel(void) {}\n```\n```c\nint x;\n```",
     "int x;\n"},
    {"nested", "````md\n```c\nvoid kernel(void);\n```\n````", "void kernel(void);\n"},
    {"nested with prose around",
     "```md\n# The file\n```c\nvoid kernel(void) {}\n```\nthat is it\n```",
     "void kernel(void) {}\n"},
    {"nested with info inside", "```md\nsee\n```c\nint a;\n```\nkernel()\n```\n",
     "see\n```c\nint a;\n```\nkernel()\n"},
    {"a fence in a comment", "````c\n/*\n```c\nkernel(1);\n```\n*/\nvoid kernel(int a) {}\n````",
     "/*\n```c\nkernel(1);\n```\n*/\nvoid kernel(int a) {}\n"},
    {"inline is no fence", "Use ```kernel()``` so:\n```c\nvoid kernel(void);\n```",
     "void kernel(void);\n"},
    {"unclosed", "```c\nvoid kernel(void) {", NULL},
    {"unclosed, then whole", "```c\nvoid ker\nagain:\n```c\nvoid kernel(void) {}\n```",
     "void kernel(void) {}\n"},
    {"closed with words after the marks", "```c\nvoid kernel(void) {}\n``` (end)\nbye",
     "void kernel(void) {}\n"},
    {"outer one cut off", "````md\n```c\nvoid kernel(void) {}\n```\nand so",
     "void kernel(void) {}\n"},
    {"closed, then cut off", "```c\nvoid kernel(void) {}\n```\n```c\nvoid ker",
     "void kernel(void) {}\n"},
    {"a declaration, then cut off", "```c\nvoid kernel(void);\n```\n```c\nvoid kernel(void)\n{",
     NULL},
    {"a command, then cut off", "```sh\nls\n```\n```c\nvoid kernel(void) {", NULL},
    {"closed by another mark", "```c\nvoid kernel(void) {}\n~~~\n", NULL},
    {"closed by a shorter mark", "````c\nvoid kernel(void) {}\n```\n", NULL},
    {"bare source", "void kernel(void) { }\n", "void kernel(void) { }\n"},
    {"bare source after prose",
     "Here it is, kernel():\n\n#include <math.h>\nvoid kernel(void) { }\n",
     "#include <math.h>\nvoid kernel(void) { }\n"},
    {"bare source between prose",
     "It is\n\nvoid kernel(void)\n{\n    int a;\n}\n#endif\n\nThis tiles A; it is fast.\nBye\n",
     "void kernel(void)\n{\n    int a;\n}\n#endif\n"},
    {"tags",
     "So: <pre><code class=\"c\">\nvoid kernel(int a) {\n  a &lt; 2 &amp;&amp; a; }\n</code></pre> "
     "done",
     "void kernel(int a) {\n  a < 2 && a; }\n"},
    {"tags of which one has it", "<code>kernel(1)</code> is <CODE>void kernel(int a) {}</CODE>",
     "void kernel(int a) {}"},
    {"tags around a name", "call <code>kernel(1)</code> so", NULL},
    {"a tag that does not close", "<code>void kernel(int a) {}", NULL},
    {"a diff that makes a whole file",
     "```diff\n--- /dev/null\n+++ b/k.c\n@@ -0,0 +1,3 @@\n+void kernel(int a)\n+{\n+}\n```",
     "void kernel(int a)\n{\n}\n"},
    {"a diff of a whole file", "```diff\n void kernel(int a)\n {\n-    a;\n+    --a;\n }\n```",
     "void kernel(int a)\n{\n    --a;\n}\n"},
    {"a diff in parts",
     "```diff\n@@ -1,2 +1,2 @@\n void kernel(int a) {\n@@ -9,2 +9,2 @@\n-int b;\n+int c;\n```",
     NULL},
    {"a file and its diff", "```diff\n-a\n+b\n```\n```c\nvoid kernel(int a) {}\n```",
     "void kernel(int a) {}\n"},
    {"a byte order mark, spaces that do not break, what takes no room",
     "```c\n\xEF\xBB\xBFvoid\xC2\xA0kernel(\xE2\x80\x8Bvoid) {}\n```", "void kernel(void) {}\n"},
    {"prose that names it", "I would change kernel(A, B) so that it tiles.", NULL},
    {"prose alone", "I cannot do that.", NULL},
    {"empty", "", NULL},
    {"an empty block", "```c\n```", ""},
    {"a fence alone", "```", NULL},
    {"replacement character", "```c\nvoid kernel(void); // \xEF\xBF\xBD\n```", NULL},
    {"latin-1", "```c\nvoid kernel(void); // \xE9\n```", NULL},
    {"0xFF", "```c\nvoid kernel(void); // \xFF\n```", NULL},
    {"a surrogate", "```c\nvoid kernel(void); // \xED\xA0\x80\n```", NULL},
    {"cut in a character", "```c\nvoid kernel(void); // \xC3\n```", NULL},
    {"latin-1 outside the code", "caf\xE9\n```c\nvoid kernel(void) {}\n```",
     "void kernel(void) {}\n"},
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

/* Answers of a megabyte, made to be slow to read: each is read in a moment, to the same end twice.
 */
static void test_large(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "kernel(", "kernel(1) ", "```\n",         "```c\n", "`",     "{\"",        "[\"",
        "{\"\":",  "[[",         "```c\nkernel(", "{}",     "/*---", "~~~\n```x\n"};
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES + 64);
    assert_non_null(text);
    for (size_t i = 0; i < COUNT(pieces); i++) {
        size_t size = strlen(pieces[i]), used = 0;
        if (i % 2 > 0) /* half of them in a block that closes */
            used = (size_t)sprintf(text, "```c\n");
        for (; used + size < BYTES; used += size)
            memcpy(text + used, pieces[i], size);
        memcpy(text + used, i % 2 > 0 ? "\n```" : "", i % 2 > 0 ? 5 : 1);
        struct arena *arena = arena_new();
        const char *first = NULL, *second = NULL;
        size_t length = 0, again = 0;
        int status = extract_code(arena, text, "kernel", &first, &length, NULL);
        assert_int_equal(extract_code(arena, text, "kernel", &second, &again, NULL), status);
        if (status == 0) {
            assert_int_equal(length, again);
            assert_memory_equal(first, second, length);
        }
        status = extract_json(arena, text, &first, &length, NULL);
        assert_int_equal(status, strcmp(pieces[i], "{}") == 0 ? 0 : -1);
        arena_free(arena);
    }
    /* and a whole file of that size comes out whole */
    size_t used = (size_t)sprintf(text, "so:\n```c\nvoid kernel(void) {}\n//");
    memset(text + used, 'x', BYTES - 64 - used);
    memcpy(text + BYTES - 64, "\n```\nbye", 9);
    struct arena *arena = arena_new();
    const char *code;
    size_t length;
    assert_int_equal(extract_code(arena, text, "kernel", &code, &length, NULL), 0);
    assert_int_equal(length, BYTES - 64 - 9 + 1);
    arena_free(arena);
    free(text);
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
    {"", NULL},
    {"{\"open\": [1,\nthen {\"a\": 2}", "{\"a\": 2}"},
    {"[[[[ \"", NULL},
    {"{\"a\": \"\\\\\"} \"}", "{\"a\": \"\\\\\"}"},
    {"{\"a\": \"\\", NULL},
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_code), cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
