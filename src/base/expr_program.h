/* base/expr_program: what the parser leaves and the evaluator runs: a program for a stack machine,
 * so that evaluation needs no recursion. Inside base/expr*.c only. Read-only once parsed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 64 levels, each of which leaves at most a comparison, a sum, a product and an argument waiting.
 */
enum { EXPR_STACK_MOST = 320 };

enum expr_op {
    OP_NUMBER, /* push number */
    OP_NAME,   /* push what the name stands for */
    OP_NEGATE,
    OP_NOT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_REMAINDER,
    OP_ADD,
    OP_SUBTRACT,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
    OP_EQUAL,
    OP_NOT_EQUAL,
    OP_MIN,
    OP_MAX,
    OP_CEIL_DIV,
    OP_ROUND_UP,
    OP_NEXT_POW2,
    OP_TRUTH,    /* anything but 0 becomes 1 */
    OP_AND_SKIP, /* a false top becomes the result: on to `number`; else drop it */
    OP_OR_SKIP   /* a true top becomes the result, as 1: on to `number`; else drop it */
};

struct expr_step {
    enum expr_op op;
    int64_t number;   /* OP_NUMBER; the step to go on at for OP_AND_SKIP and OP_OR_SKIP */
    const char *name; /* OP_NAME */
};

struct expr {
    const char *text; /* for messages */
    size_t count;
    const struct expr_step *steps;
};
