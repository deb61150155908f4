/* Expressions in Python's words: what Python makes of the text is what expr_eval() gives. And in
 * JavaScript's. */
#include "check.h"

#include "base/buf.h"
#include "base/expr.h"

#define FUNCTIONS TEST_SOURCE_DIR "/libexec/emit"

static const char *const texts[] = {
    "1",
    "-M + 3",
    "M / N",
    "-M / N",
    "M % N",
    "-M % N",
    "(M < N) * 4 + (M >= N)",
    "ceil_div(M, 128) * 2 - round_up(N, 16)",
    "min(M, N, 12) + max(M, 1, N)",
    "next_pow2(M) + next_pow2(0) + next_pow2(1)",
    "!M + !0",
    "M && N",
    "M > 5 && N > 5 || M == 1",
    "(0 && 1 / 0) + (1 || 1 / 0)",
    "1 || 0 && 0",
    "(M || N) && (0 || N && !0)",
    "((M <= 640) && (N * 3 != 21 || M == 7)) * 5 + -(-2)",
    "9223372036854775807",
};

static void test_same(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct names names = {0};
    struct err err;
    struct buf command;
    assert_int_equal(names_set(&names, "M", 517, &err), 0);
    assert_int_equal(names_set(&names, "N", 7, &err), 0);
    buf_init(&command, 1 << 16);
    buf_add_text(&command, "PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c 'import sys; "
                           "sys.path.insert(0, \"" FUNCTIONS "\"); import shapes\n"
                           "scope = {\"M\": 517, \"N\": 7}\n"
                           "for text, number in [");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct expr *expr;
        int64_t number = 0;
        if (expr_parse(arena, texts[i], &expr, &err) != 0 ||
            expr_eval(expr, expr_lookup_names, &names, &number, &err) != 0)
            fail_msg("%s: %s", texts[i], err.message);
        buf_addf(&command, "(\"%s\", %lld),\n", expr_to_python(arena, expr), (long long)number);
    }
    buf_add_text(&command, "]:\n    got = int(eval(text, shapes.FUNCTIONS, scope))\n"
                           "    assert got == number, (text, got, number)'");
    assert_int_equal(system(buf_text(&command)), 0);
    buf_free(&command);
    arena_free(arena);
}

static void test_javascript(void **state)
{
    static const char *const pairs[][2] = {
        {"M / N % 3", "rem(div(s.M, s.N), 3)"},
        {"!M + (M != N)", "(Number(!s.M) + Number(s.M !== s.N))"},
        {"M && N == 2", "(s.M ? Number(Number(s.N === 2) !== 0) : 0)"},
        {"M || -N", "(s.M ? 1 : Number((-s.N) !== 0))"},
        {"next_pow2(min(M, N))", "next_pow2(min(s.M, s.N))"}};
    struct arena *arena = arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const struct expr *expr;
        struct err err;
        assert_int_equal(expr_parse(arena, pairs[i][0], &expr, &err), 0);
        assert_string_equal(expr_to_javascript(arena, expr), pairs[i][1]);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same),
                                       cmocka_unit_test(test_javascript)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
