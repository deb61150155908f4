/* An expression in Python's or JavaScript's words: the steps of the stack machine put together
 * again, each value a text. What `&&` and `||` leave out stays unevaluated there, too. */
#include "base/expr.h"
#include "base/expr_program.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WAITING_MOST = 130 }; /* && and || whose right side is not finished: two a level at most */

struct writer {
    struct arena *arena;
    bool javascript;
};

struct waiting {
    const char *left;
    size_t until; /* the step before which the right side is whole */
    enum expr_op op;
};

static const char *two(const struct writer *writer, enum expr_op op, const char *a, const char *b)
{
    static const char *const infix[] = {
        [OP_MULTIPLY] = "*",    [OP_ADD] = "+",     [OP_SUBTRACT] = "-", [OP_LESS] = "<",
        [OP_LESS_EQUAL] = "<=", [OP_GREATER] = ">", [OP_EQUAL] = "==",   [OP_GREATER_EQUAL] = ">=",
        [OP_NOT_EQUAL] = "!="};
    static const char *const function[] = {
        [OP_DIVIDE] = "div", [OP_REMAINDER] = "rem",     [OP_MIN] = "min",
        [OP_MAX] = "max",    [OP_CEIL_DIV] = "ceil_div", [OP_ROUND_UP] = "round_up"};
    enum {
        INFIX = sizeof infix / sizeof infix[0],
        FUNCTION = sizeof function / sizeof function[0]
    };
    if ((size_t)op < FUNCTION && function[op] != NULL)
        return arena_printf(writer->arena, "%s(%s, %s)", function[op], a, b);
    if ((size_t)op >= INFIX || infix[op] == NULL)
        abort(); /* the parser emits no other step that takes two values */
    bool truth = op >= OP_LESS && op <= OP_NOT_EQUAL;
    const char *sign = writer->javascript && op == OP_EQUAL       ? "==="
                       : writer->javascript && op == OP_NOT_EQUAL ? "!=="
                                                                  : infix[op];
    const char *call = !truth ? "" : writer->javascript ? "Number" : "int";
    return arena_printf(writer->arena, "%s(%s %s %s)", call, a, sign, b);
}

static const char *one(const struct writer *writer, enum expr_op op, const char *a)
{
    switch (op) {
    case OP_NEGATE:
        return arena_printf(writer->arena, "(-%s)", a);
    case OP_NOT:
        return arena_printf(writer->arena, writer->javascript ? "Number(!%s)" : "int(not %s)", a);
    case OP_NEXT_POW2:
        return arena_printf(writer->arena, "next_pow2(%s)", a);
    default:
        return a; /* OP_TRUTH: said where the two sides are joined */
    }
}

static const char *joined(const struct writer *writer, const struct waiting *waiting,
                          const char *right)
{
    bool both = waiting->op == OP_AND_SKIP;
    if (writer->javascript)
        return arena_printf(writer->arena,
                            both ? "(%s ? Number(%s !== 0) : 0)" : "(%s ? 1 : Number(%s !== 0))",
                            waiting->left, right);
    return arena_printf(writer->arena,
                        both ? "(int(bool(%s)) if %s else 0)" : "(int(bool(%s)) if not %s else 1)",
                        right, waiting->left);
}

static const char *write(const struct writer *writer, const struct expr *expr)
{
    const char *stack[EXPR_STACK_MOST] = {0};
    struct waiting waiting[WAITING_MOST];
    size_t count = 0, open = 0;
    for (size_t at = 0; at <= expr->count; at++) {
        while (open > 0 && waiting[open - 1].until == at) {
            stack[count - 1] = joined(writer, &waiting[open - 1], stack[count - 1]);
            open--;
        }
        if (at == expr->count)
            break;
        const struct expr_step *step = &expr->steps[at];
        switch (step->op) {
        case OP_NUMBER:
            stack[count++] = arena_printf(writer->arena, "%" PRId64, step->number);
            break;
        case OP_NAME:
            stack[count++] =
                writer->javascript ? arena_printf(writer->arena, "s.%s", step->name) : step->name;
            break;
        case OP_AND_SKIP:
        case OP_OR_SKIP:
            waiting[open++] = (struct waiting){stack[--count], (size_t)step->number, step->op};
            break;
        case OP_NEGATE:
        case OP_NOT:
        case OP_TRUTH:
        case OP_NEXT_POW2:
            stack[count - 1] = one(writer, step->op, stack[count - 1]);
            break;
        default:
            count--;
            stack[count - 1] = two(writer, step->op, stack[count - 1], stack[count]);
            break;
        }
    }
    return stack[0];
}

const char *expr_to_python(struct arena *arena, const struct expr *expr)
{
    return write(&(struct writer){arena, false}, expr);
}

const char *expr_to_javascript(struct arena *arena, const struct expr *expr)
{
    return write(&(struct writer){arena, true}, expr);
}
