#include "base/expr.h"
#include "base/expr_program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum fault { FAULT_NONE, FAULT_OVERFLOW, FAULT_ZERO, FAULT_NOT_POSITIVE };

/* Rounds toward plus infinity; b > 0, so nothing overflows. */
static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

static enum fault divide(enum expr_op op, int64_t a, int64_t b, int64_t *result)
{
    if (b == 0)
        return FAULT_ZERO;
    if (b == -1) { /* INT64_MIN / -1 traps, and so does its remainder */
        if (op == OP_REMAINDER)
            *result = 0;
        else if (__builtin_sub_overflow((int64_t)0, a, result))
            return FAULT_OVERFLOW;
        return FAULT_NONE;
    }
    *result = op == OP_DIVIDE ? a / b : a % b;
    return FAULT_NONE;
}

static enum fault apply_two(enum expr_op op, int64_t a, int64_t b, int64_t *result)
{
    bool overflow = false;
    switch (op) {
    case OP_MULTIPLY:
        overflow = __builtin_mul_overflow(a, b, result);
        break;
    case OP_ADD:
        overflow = __builtin_add_overflow(a, b, result);
        break;
    case OP_SUBTRACT:
        overflow = __builtin_sub_overflow(a, b, result);
        break;
    case OP_DIVIDE:
    case OP_REMAINDER:
        return divide(op, a, b, result);
    case OP_LESS:
        *result = a < b;
        break;
    case OP_LESS_EQUAL:
        *result = a <= b;
        break;
    case OP_GREATER:
        *result = a > b;
        break;
    case OP_GREATER_EQUAL:
        *result = a >= b;
        break;
    case OP_EQUAL:
        *result = a == b;
        break;
    case OP_NOT_EQUAL:
        *result = a != b;
        break;
    case OP_MIN:
        *result = a < b ? a : b;
        break;
    case OP_MAX:
        *result = a > b ? a : b;
        break;
    case OP_CEIL_DIV:
    case OP_ROUND_UP:
        if (b <= 0)
            return FAULT_NOT_POSITIVE;
        *result = ceil_div(a, b);
        if (op == OP_ROUND_UP)
            overflow = __builtin_mul_overflow(*result, b, result);
        break;
    default:
        abort(); /* the parser emits no other step that takes two values */
    }
    return overflow ? FAULT_OVERFLOW : FAULT_NONE;
}

static enum fault apply_one(enum expr_op op, int64_t *top)
{
    switch (op) {
    case OP_NEGATE:
        return __builtin_sub_overflow((int64_t)0, *top, top) ? FAULT_OVERFLOW : FAULT_NONE;
    case OP_NOT:
        *top = *top == 0;
        return FAULT_NONE;
    case OP_TRUTH:
        *top = *top != 0;
        return FAULT_NONE;
    default:
        break;
    }
    assert(op == OP_NEXT_POW2);
    int64_t power = 1;
    while (power < *top)
        if (__builtin_mul_overflow(power, 2, &power))
            return FAULT_OVERFLOW;
    *top = power;
    return FAULT_NONE;
}

static int refuse(const struct expr *expr, enum fault fault, struct err *err)
{
    static const char *const reasons[] = {
        [FAULT_OVERFLOW] = "a result of 64 bits",
        [FAULT_ZERO] = "a divisor other than 0",
        [FAULT_NOT_POSITIVE] = "a positive second argument of ceil_div and round_up",
    };
    return err_set(err, ERR_USAGE, "expected %s in \"%.200s\"", reasons[fault], expr->text);
}

int expr_eval(const struct expr *expr, expr_lookup *lookup, void *context, int64_t *number,
              struct err *err)
{
    int64_t stack[EXPR_STACK_MOST] = {0};
    size_t count = 0;
    for (size_t at = 0; at < expr->count; at++) {
        const struct expr_step *step = &expr->steps[at];
        enum fault fault = FAULT_NONE;
        switch (step->op) {
        case OP_NUMBER:
            stack[count++] = step->number;
            break;
        case OP_NAME:
            if (lookup == NULL || !lookup(context, step->name, &stack[count]))
                return err_set(err, ERR_USAGE,
                               "expected a known name, not \"%.100s\", in \"%.200s\"", step->name,
                               expr->text);
            count++;
            break;
        case OP_AND_SKIP:
        case OP_OR_SKIP:
            if ((stack[count - 1] != 0) == (step->op == OP_OR_SKIP)) {
                stack[count - 1] = step->op == OP_OR_SKIP;
                at = (size_t)step->number - 1;
            } else {
                count--;
            }
            break;
        case OP_NEGATE:
        case OP_NOT:
        case OP_TRUTH:
        case OP_NEXT_POW2:
            fault = apply_one(step->op, &stack[count - 1]);
            break;
        default:
            count--;
            fault = apply_two(step->op, stack[count - 1], stack[count], &stack[count - 1]);
            break;
        }
        if (fault != FAULT_NONE)
            return refuse(expr, fault, err);
    }
    assert(count == 1);
    *number = stack[0];
    return 0;
}

void expr_names(const struct expr *expr, void (*visit)(void *context, const char *name),
                void *context)
{
    for (size_t i = 0; i < expr->count; i++)
        if (expr->steps[i].op == OP_NAME)
            visit(context, expr->steps[i].name);
}

int names_set(struct names *names, const char *name, int64_t number, struct err *err)
{
    size_t i = 0;
    while (i < names->count && strcmp(names->name[i], name) != 0)
        i++;
    if (i == sizeof names->name / sizeof names->name[0])
        return err_set(err, ERR_LIMIT, "more than %zu names (at \"%.100s\")", i, name);
    if (i == names->count) {
        names->name[i] = name;
        names->count++;
    }
    names->number[i] = number;
    return 0;
}

bool expr_lookup_names(void *context, const char *name, int64_t *number)
{
    const struct names *names = (const struct names *)context;
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->name[i], name) == 0) {
            *number = names->number[i];
            return true;
        }
    }
    return false;
}
