#include "check.h"

#include "base/buf.h"
#include "base/expr.h"

static struct arena *arena;
static struct names names;

static int begin(void **state)
{
    (void)state;
    struct err err;
    arena = arena_new();
    names.count = 0;
    if (names_set(&names, "M", 1, &err) || names_set(&names, "N", 65, &err) ||
        names_set(&names, "BN", 32, &err) || names_set(&names, "zero", 0, &err) ||
        names_set(&names, "most", INT64_MAX, &err) || names_set(&names, "least", INT64_MIN, &err) ||
        names_set(&names, "M", 128, &err)) /* replaces */
        return -1;
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static const struct {
    const char *text;
    int64_t number;
} value_cases[] = {
    {"7", 7},
    {" 7\n", 7},
    {"9223372036854775807", INT64_MAX},
    {"-9223372036854775807 - 1", INT64_MIN},
    {"1+2*3", 7},
    {"(1+2)*3", 9},
    {"10-4-3", 3},
    {"100/7/2", 7},
    {"-7/2", -3},
    {"-7%3", -1},
    {"7%-3", 1},
    {"2*-3", -6},
    {"--3", 3},
    {"- - 3", 3},
    {"-(2+3)", -5},
    {"!0", 1},
    {"!!5", 1},
    {"!N == 0", 1}, /* (!N) == 0, as in C */
    {"1 < 2", 1},
    {"2 <= 1", 0},
    {"1+1 == 2", 1},
    {"3 != 3", 0},
    {"2 > 1", 1},
    {"1 >= 2", 0},
    {"1 < 2 && 2 < 3", 1},
    {"0 || 5", 1},
    {"2 && 3", 1},
    {"1 || 0 && 0", 1},
    {"(1 || 0) && 0", 0},
    {"zero != 0 && 5 / zero > 1", 0}, /* the right side is not looked at */
    {"zero == 0 || 5 / zero > 1", 1},
    {"0 && unknown", 0},
    {"1 || unknown", 1},
    {"0 || 0 || 7", 1},
    {"1 && 1 && 0", 0},
    {"1 + (0 && 1) + (1 || 0)", 2},
    {"M", 128},
    {"ceil_div(N, BN)", 3},
    {"ceil_div(64, 32)", 2},
    {"ceil_div(-7, 2)", -3},
    {"ceil_div(0, 5)", 0},
    {"ceil_div(most, 1)", INT64_MAX},
    {"ceil_div(least, 2)", INT64_MIN / 2},
    {"round_up(65, 32)", 96},
    {"round_up(-65, 32)", -64},
    {"round_up(64, 32)", 64},
    {"next_pow2(0)", 1},
    {"next_pow2(1)", 1},
    {"next_pow2(-5)", 1},
    {"next_pow2(65)", 128},
    {"next_pow2(64)", 64},
    {"next_pow2(4611686018427387904)", INT64_C(1) << 62},
    {"min(3)", 3},
    {"min(3, 1, 2)", 1},
    {"max(3, 1+9, 2)", 10},
    {"max (1, min(7, 5))", 5},
    {"least % -1", 0},
    {"4 * (N*BN + BN*M)", 24704},
};

static void values(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(value_cases); i++) {
        struct err err;
        const struct expr *expr;
        int64_t number = 0;
        if (expr_parse(arena, value_cases[i].text, &expr, &err) ||
            expr_eval(expr, expr_lookup_names, &names, &number, &err))
            fail_msg("%s: %s", value_cases[i].text, err.message);
        if (number != value_cases[i].number)
            fail_msg("%s is %lld", value_cases[i].text, (long long)number);
    }
}

static void syntax_errors_name_the_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "column 1: expected a number, a name or \"(\", not the end"},
        {"  ", "column 3: expected a number, a name or \"(\", not the end"},
        {"1 +", "column 4: expected a number, a name or \"(\", not the end"},
        {"1 2", "column 3: expected an operator or the end, not \"2\""},
        {"M N", "column 3: expected an operator or the end, not \"N\""},
        {"(1", "column 3: expected an operator or \")\", not the end"},
        {"1)", "column 2: expected an operator or the end, not \")\""},
        {"()", "column 2: expected a number, a name or \"(\", not \")\""},
        {"1 < 2 < 3", "column 7: expected && or parentheses, since comparisons do not chain"},
        {"1 = 2", "column 3: expected an operator or the end, not \"=\""},
        {"1 & 2", "column 3: expected an operator or the end, not \"&\""},
        {"12ab", "column 1: expected an integer, not \"12ab\""},
        {"1.5", "column 1: expected an integer, not \"1\""},
        {"0x10", "column 1: expected an integer"},
        {"9223372036854775808", "column 1: expected an integer of 64 bits"},
        {"99999999999999999999999", "column 1: expected an integer of 64 bits"},
        {"foo(1)", "column 1: expected one of the functions min, max,"},
        {"min()", "column 5: expected a number, a name or \"(\", not \")\""},
        {"min(1,)", "column 7: expected a number, a name or \"(\", not \")\""},
        {"min(1 2)", "column 7: expected \",\" or \")\", not \"2\""},
        {"ceil_div(1)", "column 11: expected \",\" and another argument, not \")\""},
        {"ceil_div(1,2,3)", "column 14: expected \")\""},
        {"next_pow2(1,2)", "column 13: expected \")\""},
        {"1, 2", "column 2: expected an operator or the end, not \",\""},
        {"\xc3\xa9", "column 1: expected a number, a name or \"(\", not \"\xc3\xa9\""},
        {"a.b", "column 2: expected an operator or the end, not \".\""},
        {"system(\"x\")", "column 1: expected one of the functions"},
        {"1 ? 2 : 3", "column 3: expected an operator or the end, not \"?\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err err;
        const struct expr *expr = NULL;
        if (expr_parse(arena, cases[i].text, &expr, &err) == 0)
            fail_msg("\"%s\" is not refused", cases[i].text);
        assert_null(expr);
        assert_int_equal(err.code, ERR_USAGE);
        assert_contains(err.message, cases[i].message);
    }
}

static void evaluation_errors_say_what(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"1 / zero", "expected a divisor other than 0 in \"1 / zero\""},
        {"1 % 0", "expected a divisor other than 0"},
        {"least / -1", "expected a result of 64 bits in \"least / -1\""},
        {"-least", "expected a result of 64 bits"},
        {"most + 1", "expected a result of 64 bits"},
        {"least - 1", "expected a result of 64 bits"},
        {"most * 2", "expected a result of 64 bits"},
        {"least * -1", "expected a result of 64 bits"},
        {"round_up(most, 2)", "expected a result of 64 bits"},
        {"next_pow2(4611686018427387905)", "expected a result of 64 bits"},
        {"ceil_div(1, 0)", "expected a positive second argument"},
        {"round_up(1, -2)", "expected a positive second argument"},
        {" foo + 1 ", "expected a known name, not \"foo\", in \"foo + 1\""},
        {"1 && unknown", "expected a known name, not \"unknown\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err err;
        const struct expr *expr;
        int64_t number = 77;
        assert_int_equal(expr_parse(arena, cases[i].text, &expr, &err), 0);
        if (expr_eval(expr, expr_lookup_names, &names, &number, &err) == 0)
            fail_msg("%s is %lld", cases[i].text, (long long)number);
        assert_int_equal(number, 77);
        assert_int_equal(err.code, ERR_USAGE);
        assert_contains(err.message, cases[i].message);
    }
    struct err err;
    const struct expr *expr;
    int64_t number;
    assert_int_equal(expr_parse(arena, "M", &expr, &err), 0);
    assert_int_equal(expr_eval(expr, NULL, NULL, &number, &err), -1);
}

static void nothing_stands_behind(void **state)
{
    (void)state;
    struct err err;
    static const char *const texts[] = {"1,2", "1,", "", "1 1"};
    const struct expr *expr = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(expr_parse(arena, texts[i], &expr, &err), -1);
    assert_contains(err.message, "column 3: expected an operator or the end");
    assert_null(expr);
}

/* `times` of `piece`, then `last`, then `times` of `close`. */
static const char *repeated(const char *piece, const char *last, const char *close, int times)
{
    struct buf buf;
    buf_init(&buf, 10000);
    for (int i = 0; i < times; i++)
        buf_add_text(&buf, piece);
    buf_add_text(&buf, last);
    for (int i = 0; i < times; i++)
        buf_add_text(&buf, close);
    const char *text = arena_strdup(arena, buf_text(&buf));
    buf_free(&buf);
    return text;
}

static void depth_and_length_are_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *piece, *close;
        int fits, too_many;
        int64_t number;
    } cases[] = {
        {"(", ")", 63, 64, 1},      {"-", "", 63, 64, -1},        {"!", "", 63, 64, 0},
        {"max(", ")", 63, 64, 1},   {"1+", "", 2047, 2048, 2048}, {"1||1&&1<1+1*(", ")", 63, 64, 1},
        {"min(1,", ")", 63, 64, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err err;
        const struct expr *expr;
        int64_t number = 0;
        const char *fits = repeated(cases[i].piece, "1", cases[i].close, cases[i].fits);
        if (expr_parse(arena, fits, &expr, &err) ||
            expr_eval(expr, expr_lookup_names, &names, &number, &err))
            fail_msg("%s: %s", fits, err.message);
        assert_int_equal(number, cases[i].number);
        const char *too_many = repeated(cases[i].piece, "1", cases[i].close, cases[i].too_many);
        assert_int_equal(expr_parse(arena, too_many, &expr, &err), -1);
        assert_contains(err.message, "expected at most");
    }
}

static void count_name(void *context, const char *name)
{
    buf_addf((struct buf *)context, "%s ", name);
}

static void names_are_visited(void **state)
{
    (void)state;
    struct err err;
    const struct expr *expr;
    struct buf seen;
    buf_init(&seen, 100);
    assert_int_equal(expr_parse(arena, "a + min(b, a) || c_1 * 2", &expr, &err), 0);
    expr_names(expr, count_name, &seen);
    assert_string_equal(buf_text(&seen), "a b a c_1 ");
    buf_free(&seen);
}

static void names_are_bounded(void **state)
{
    (void)state;
    struct names full = {0};
    struct err err;
    for (int i = 0; i < 64; i++)
        assert_int_equal(names_set(&full, arena_printf(arena, "n%d", i), i, &err), 0);
    assert_int_equal(names_set(&full, "n7", 700, &err), 0);
    assert_int_equal(names_set(&full, "another", 1, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    int64_t number;
    assert_true(expr_lookup_names(&full, "n7", &number));
    assert_int_equal(number, 700);
    assert_false(expr_lookup_names(&full, "another", &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(syntax_errors_name_the_column),
        cmocka_unit_test(evaluation_errors_say_what),
        cmocka_unit_test(nothing_stands_behind),
        cmocka_unit_test(depth_and_length_are_bounded),
        cmocka_unit_test(names_are_visited),
        cmocka_unit_test(names_are_bounded),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
