#include "check.h"

#include "base/err.h"

#include <errno.h>

static void set_fills_and_returns(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(err_set(&err, ERR_LIMIT, "%d of %s", 7, "these"), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_string_equal(err.message, "7 of these");
    assert_int_equal(err_set(NULL, ERR_IO, "nobody looks"), -1);
    assert_int_equal(err_set_errno(NULL, ERR_IO, ENOENT, "nobody looks"), -1);
    assert_int_equal(err_wrap(NULL, "nobody looks"), -1);
}

static void set_may_use_its_own_message(void **state)
{
    (void)state;
    struct err err;
    err_set(&err, ERR_IO, "first");
    err_set(&err, ERR_PARSE, "%s, second", err.message);
    assert_string_equal(err.message, "first, second");
}

static void message_is_one_line(void **state)
{
    (void)state;
    struct err err;
    err_set(&err, ERR_IO, "a\nb\x1b[31m\tc\x7f");
    assert_string_equal(err.message, "a b [31m c ");
    err_set(&err, ERR_IO, "%s",
            "\u00e9t\u00e9 \u202Ec.lenrek\u2066 \u200B\u061C\U0001F600 \xC2\x9B"
            "1m \x9B \xE2\x80");
    assert_string_equal(err.message, "\u00e9t\u00e9  c.lenrek    \U0001F600  1m ? ??");
    err_set(&err, ERR_IO, "a\U000E0041\U000E0073b"); /* tags: text for machines alone */
    assert_string_equal(err.message, "a  b");
}

static void errno_is_named_even_behind_a_long_path(void **state)
{
    (void)state;
    struct err err;
    err_set_errno(&err, ERR_NOT_FOUND, ENOENT, "%s", "x/y");
    assert_string_equal(err.message, "x/y: No such file or directory");
    char path[1000];
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    err_set_errno(&err, ERR_NOT_FOUND, ENOENT, "%s", path);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_contains(err.message, "pp: No such file or directory");
}

static void wrap_goes_before_and_keeps_the_cause(void **state)
{
    (void)state;
    struct err err;
    err_set(&err, ERR_TIMEOUT, "cause");
    assert_int_equal(err_wrap(&err, "context %d", 1), -1);
    assert_string_equal(err.message, "context 1: cause");
    assert_int_equal(err.code, ERR_TIMEOUT);

    char context[1000];
    memset(context, 'c', sizeof context - 1);
    context[sizeof context - 1] = '\0';
    err_wrap(&err, "%s", context);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_contains(err.message, "ccc: context 1: cause");

    memset(err.message, 'm', sizeof err.message - 1);
    err_wrap(&err, "%s", context);
    assert_int_equal(strspn(err.message, "c"), 80);
    err_wrap(&err, "short");
    assert_int_equal(strncmp(err.message, "short: cc", 9), 0);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

static void codes_have_names_and_exit_codes(void **state)
{
    (void)state;
    for (int code = 0; code < ERR_CODES; code++) {
        assert_non_null(err_code_name((enum err_code)code));
        assert_int_equal(err_exit_code((enum err_code)code), code == ERR_USAGE ? 2 : 3);
        for (int other = 0; other < code; other++)
            assert_string_not_equal(err_code_name((enum err_code)code),
                                    err_code_name((enum err_code)other));
    }
    assert_string_equal(err_code_name(ERR_TIMEOUT), "timeout");
    assert_string_equal(err_code_name((enum err_code)1000), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_fills_and_returns),
        cmocka_unit_test(set_may_use_its_own_message),
        cmocka_unit_test(message_is_one_line),
        cmocka_unit_test(errno_is_named_even_behind_a_long_path),
        cmocka_unit_test(wrap_goes_before_and_keeps_the_cause),
        cmocka_unit_test(codes_have_names_and_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
