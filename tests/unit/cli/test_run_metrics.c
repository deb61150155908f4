/* cli/status/metrics: hostile names stay inside their labels, and what is not known is left out. */
#include "check.h"
#include "cli/status/facts.h"

#include <string.h>

static void test_hostile_names(void **state)
{
    (void)state;
    ARENA_LOCAL(arena);
    BUF_LOCAL(out, 1 << 20);
    static const char asked[] =
        "[{\"name\": \"a\\\"} 1\\n# EOF\\\\\", \"answered\": 3, \"failed\": 1}]";
    struct value *list;
    struct err err;
    assert_int_equal(value_parse_json(arena, "asked", asked, strlen(asked), &list, &err), 0);
    const struct run_status status = {
        .run = {.id = "r1", .problem = "x\",y=\"\n", .backend = "cpu", .best = "", .paused = ""},
        .state = "running",
        .asked = list};
    run_status_metrics(&status, &out);
    const char *text = buf_text(&out);
    assert_non_null(strstr(
        text, "problem=\"x\\\",y=\\\" \",model=\"a\\\"} 1 # EOF\\\\\",outcome=\"answered\"} 3\n"));
    assert_null(strstr(text, "twagent_best_seconds{"));
    assert_ptr_equal(strstr(text, "\n# EOF\n"), text + out.length - 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hostile_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
