#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "report/report.h"

static struct value *parsed(struct arena *arena, const char *text)
{
    struct value *value;
    struct err err;
    assert_int_equal(value_parse_json(arena, "evidence", text, strlen(text), &value, &err), 0);
    return value;
}

static void written(const char *name, const char *evaluation, const char *source, struct buf *out)
{
    struct arena *arena = arena_new();
    const struct report report = {.problem = "matmul",
                                  .outcome = "2.000x",
                                  .best = "r1-c2",
                                  .language = language_of_file(name),
                                  .source = source,
                                  .evaluation = parsed(arena, evaluation)};
    buf_init(out, 1 << 20);
    report_kernel(&report, out);
    arena_free(arena);
}

static void front_matter_comes_first_with_fixed_numbers(void **state)
{
    struct buf out;
    (void)state;
    written(
        "packed.c", "{\"tune\": {\"MR\": 6, \"NR\": 16}}",
        "/*---\ncompile:\n  flags: [-Ofast]\ntune:\n  MR: [4, 6]\n  NR: [8, 16]\nworkspace:\n  W: "
        "[M]\n---*/\nvoid kernel(void);\n",
        &out);
    static const char head[] =
        "/*---\ncompile:\n  flags: [-Ofast]\nworkspace:\n  W: [M]\ntune:\n  MR: [6]\n"
        "  NR: [16]\n---*/\n/* matmul, r1-c2: 2.000x\n";
    assert_memory_equal(buf_text(&out), head, sizeof head - 1);
    assert_non_null(strstr(buf_text(&out), "#ifndef NR\n#define NR 16\n#endif\n"));
    assert_non_null(strstr(buf_text(&out), "\nvoid kernel(void);\n"));
    assert_null(strstr(buf_text(&out), "[4, 6]"));
    buf_free(&out);
}

static void nothing_to_tune_is_left_as_it_is(void **state)
{
    struct buf out;
    (void)state;
    written("plain.c", "{}", "void kernel(void);\n", &out);
    assert_memory_equal(buf_text(&out), "/* matmul", 9);
    assert_null(strstr(buf_text(&out), "---"));
    buf_free(&out);
}

static void cuda_keeps_its_launches(void **state)
{
    struct buf out;
    (void)state;
    written("wide.cu", "{\"tune\": {\"T\": 2}}",
            "/*---\nlaunch:\n  - {entry: f, grid: M, block: 32, args: [A]}\ntune: {T: [1, "
            "2]}\n---*/\ncode\n",
            &out);
    static const char head[] =
        "/*---\nlaunch:\n  - {entry: f, grid: M, block: 32, args: [A]}\ntune:\n  T: [2]\n---*/\n";
    assert_memory_equal(buf_text(&out), head, sizeof head - 1);
    assert_null(strstr(buf_text(&out), "gcc"));
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(front_matter_comes_first_with_fixed_numbers),
        cmocka_unit_test(nothing_to_tune_is_left_as_it_is),
        cmocka_unit_test(cuda_keeps_its_launches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
