/* Any text parses to an expression or to a message; parentheses around it change nothing. */
#include "fuzz.h"

#include "base/arena.h"
#include "base/expr.h"

#include <string.h>

static bool look_up(void *context, const char *name, int64_t *number)
{
    (void)context;
    size_t length = strlen(name);
    *number = name[0] == 'm' ? INT64_MAX : name[0] == 'l' ? INT64_MIN : (int64_t)length * 37 - 74;
    return name[0] != 'u';
}

static void visit(void *context, const char *name)
{
    REQUIRE(name[0] != '\0');
    ++*(size_t *)context;
}

static void require_message(const struct err *err)
{
    REQUIRE(err->code == ERR_USAGE);
    REQUIRE(err->message[0] != '\0' && strchr(err->message, '\n') == NULL);
}

static void check_parenthesized(struct arena *arena, const char *text, int result, int64_t number)
{
    struct err err = {0};
    const struct expr *expr;
    int64_t again = 0;
    if (expr_parse(arena, arena_printf(arena, "(%s)", text), &expr, &err) != 0) {
        REQUIRE(strstr(err.message, "at most") != NULL); /* one level or two bytes too many */
        return;
    }
    REQUIRE(expr_eval(expr, look_up, NULL, &again, &err) == result);
    REQUIRE(result != 0 || again == number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct err err = {0};
    const char *text = arena_strndup(arena, (const char *)data, size);
    const struct expr *expr;
    size_t names = 0;
    int64_t number = 0;
    bool parsed = expr_parse(arena, text, &expr, &err) == 0;
    if (parsed) {
        expr_names(expr, visit, &names);
        int result = expr_eval(expr, look_up, NULL, &number, &err);
        if (result != 0)
            require_message(&err);
        check_parenthesized(arena, text, result, number);
    } else {
        require_message(&err);
    }
    arena_free(arena);
    return 0;
}
