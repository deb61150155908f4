/* Templates: slots are filled, unknown ones refused with their line; and every shipped one loads.
 */
#include "check.h"

#include "agents/prompt/prompt.h"
#include "agents/prompt/template.h"

static const char *const slots[] = {"name", "list", NULL};

static char *render(const char *text, const char *name, const char *list)
{
    struct arena *arena = arena_new();
    struct template *template;
    struct err err = {0};
    struct buf out;
    buf_init(&out, 1000);
    if (template_parse(arena, "t.txt", text, slots, &template, &err) != 0) {
        buf_addf(&out, "error: %s", err.message);
    } else {
        const struct slot_text texts[] = {{"name", name}, {"list", list}};
        template_render(template, texts, 2, &out);
    }
    arena_free(arena);
    return buf_take(&out);
}

static void check(const char *text, const char *name, const char *list, const char *expected)
{
    char *got = render(text, name, list);
    assert_string_equal(got, expected);
    free(got);
}

static void test_render(void **state)
{
    (void)state;
    check("a {{name}} b {{ list }}.", "N", "L", "a N b L.");
    check("{{name}}{{name}}", "x", NULL, "xx");
    check("a\n{{list}}\nb\n", "", "1\n2", "a\n1\n2\nb\n");
    check("a\n{{list}}\nb\n", "", "1\n2\n", "a\n1\n2\nb\n");
    check("a\n{{list}}\nb\n", "", "", "a\nb\n");
    check("a\n  {{list}}\nb\n", "", "", "a\n  \nb\n");
    check("{ {name} } {{name}}", "{{list}}", "L", "{ {name} } {{list}}"); /* not filled twice */
    check("", "", "", "");
}

static void test_refused(void **state)
{
    (void)state;
    check("a\nb {{nmae}}", "", "", "error: t.txt:2: unknown slot {{nmae}}");
    check("{{list}}\n{{name}}\n{{}}", "", "", "error: t.txt:3: unknown slot {{}}");
    check("a {{name\n}}", "", "", "error: t.txt:1: expected }} after {{");
    check("a {{name", "", "", "error: t.txt:1: expected }} after {{");
}

static void test_shipped(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct prompts *prompts;
    struct err err = {0};
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    if (prompts_load(arena, "cpu", &prompts, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(prompts_load(arena, "abacus", &prompts, &err), -1);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_render),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_shipped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
