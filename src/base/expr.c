/* The parser: recursive descent over the grammar
 *
 *   or      = and ("||" and)*
 *   and     = compare ("&&" compare)*
 *   compare = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]      (comparisons do not chain)
 *   sum     = product (("+" | "-") product)*
 *   product = unary (("*" | "/" | "%") unary)*
 *   unary   = ("-" | "!") unary | primary
 *   primary = integer | name | function "(" or ("," or)* ")" | "(" or ")"
 *
 * which leaves steps for the stack machine of expr_eval.c. */
#include "base/expr.h"

#include "base/expr_program.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MOST = 4096, LEVELS_MOST = 64 };

struct parser {
    struct arena *arena;
    const char *text;
    const char *at; /* always past blanks */
    struct expr_step *steps;
    size_t count, capacity;
    size_t stack, stack_most; /* values that stand on the machine's stack */
    unsigned level;
    struct err *err;
};

static int parse_or(struct parser *parser);

static void skip_blanks(struct parser *parser)
{
    parser->at += strspn(parser->at, " \t\r\n");
}

static int refuse(struct parser *parser, const char *expected)
{
    long column = (long)(parser->at - parser->text) + 1;
    if (*parser->at == '\0')
        return err_set(parser->err, ERR_USAGE, "column %ld: expected %s, not the end", column,
                       expected);
    size_t length = 1;
    if (isalnum((unsigned char)*parser->at) || *parser->at == '_')
        while (isalnum((unsigned char)parser->at[length]) || parser->at[length] == '_')
            length++;
    else if ((unsigned char)*parser->at >= 0x80) /* a whole UTF-8 character, not its first byte */
        while (length < 4 && ((unsigned char)parser->at[length] & 0xc0) == 0x80)
            length++;
    return err_set(parser->err, ERR_USAGE, "column %ld: expected %s, not \"%.*s\"", column,
                   expected, length > 40 ? 40 : (int)length, parser->at);
}

/* `pops` and `pushes` are what the step does to the stack. */
static struct expr_step *emit(struct parser *parser, enum expr_op op, size_t pops, size_t pushes)
{
    if (parser->count == parser->capacity) {
        parser->capacity = parser->capacity == 0 ? 16 : parser->capacity * 2;
        parser->steps =
            (struct expr_step *)mem_resize(parser->steps, parser->capacity * sizeof *parser->steps);
    }
    parser->stack += pushes;
    parser->stack -= pops;
    if (parser->stack > parser->stack_most)
        parser->stack_most = parser->stack;
    struct expr_step *step = &parser->steps[parser->count++];
    *step = (struct expr_step){.op = op};
    return step;
}

static bool accept(struct parser *parser, const char *token)
{
    size_t length = strlen(token);
    if (strncmp(parser->at, token, length) != 0)
        return false;
    parser->at += length;
    skip_blanks(parser);
    return true;
}

static int parse_number(struct parser *parser)
{
    int64_t number = 0;
    const char *at = parser->at;
    for (; isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *at - '0', &number))
            return refuse(parser, "an integer of 64 bits");
    if (isalpha((unsigned char)*at) || *at == '_' || *at == '.')
        return refuse(parser, "an integer");
    emit(parser, OP_NUMBER, 0, 1)->number = number;
    parser->at = at;
    skip_blanks(parser);
    return 0;
}

struct function {
    const char *name;
    enum expr_op op;
    unsigned least, most; /* arguments; most 0: any number */
};

static const struct function functions[] = {
    {"min", OP_MIN, 1, 0},
    {"max", OP_MAX, 1, 0},
    {"ceil_div", OP_CEIL_DIV, 2, 2},
    {"round_up", OP_ROUND_UP, 2, 2},
    {"next_pow2", OP_NEXT_POW2, 1, 1},
};

static const struct function *find_function(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strlen(functions[i].name) == length && memcmp(functions[i].name, name, length) == 0)
            return &functions[i];
    return NULL;
}

/* The arguments and the closing parenthesis. min and max fold as they go, so that their arguments
 * do not pile up on the stack. */
static int parse_arguments(struct parser *parser, const struct function *function)
{
    unsigned count = 0;
    do {
        if (function->most != 0 && count == function->most)
            break;
        if (parse_or(parser) != 0)
            return -1;
        count++;
        if (function->most == 0 && count > 1)
            emit(parser, function->op, 2, 1);
    } while (accept(parser, ","));
    if (count < function->least)
        return refuse(parser, "\",\" and another argument");
    if (!accept(parser, ")"))
        return refuse(parser, function->most == 0 ? "\",\" or \")\"" : "\")\"");
    if (function->most != 0)
        emit(parser, function->op, count, 1);
    return 0;
}

static int parse_name(struct parser *parser)
{
    const char *name = parser->at;
    size_t length = 0;
    while (isalnum((unsigned char)name[length]) || name[length] == '_')
        length++;
    parser->at += length;
    skip_blanks(parser);
    if (*parser->at != '(') {
        emit(parser, OP_NAME, 0, 1)->name = arena_strndup(parser->arena, name, length);
        return 0;
    }
    const struct function *function = find_function(name, length);
    if (function == NULL) {
        parser->at = name;
        return refuse(parser, "one of the functions min, max, ceil_div, round_up, next_pow2");
    }
    accept(parser, "(");
    return parse_arguments(parser, function);
}

static int parse_primary(struct parser *parser)
{
    if (isdigit((unsigned char)*parser->at))
        return parse_number(parser);
    if (isalpha((unsigned char)*parser->at) || *parser->at == '_')
        return parse_name(parser);
    if (!accept(parser, "("))
        return refuse(parser, "a number, a name or \"(\"");
    if (parse_or(parser) != 0)
        return -1;
    return accept(parser, ")") ? 0 : refuse(parser, "an operator or \")\"");
}

/* Every way back into the grammar comes through here, so this is where levels are counted. */
static int parse_unary(struct parser *parser)
{
    if (parser->level == LEVELS_MOST)
        return refuse(parser, "at most 64 levels");
    parser->level++;
    int result;
    if (accept(parser, "-")) {
        result = parse_unary(parser);
        emit(parser, OP_NEGATE, 1, 1);
    } else if (parser->at[0] == '!' && parser->at[1] != '=' && accept(parser, "!")) {
        result = parse_unary(parser);
        emit(parser, OP_NOT, 1, 1);
    } else {
        result = parse_primary(parser);
    }
    parser->level--;
    return result;
}

/* Operands with any of `signs` between them, from left to right. */
static int parse_level(struct parser *parser, const char *signs, const enum expr_op *ops,
                       int (*operand)(struct parser *parser))
{
    if (operand(parser) != 0)
        return -1;
    for (;;) {
        const char *sign = *parser->at != '\0' ? strchr(signs, *parser->at) : NULL;
        if (sign == NULL || !accept(parser, (const char[]){*sign, '\0'}))
            return 0;
        if (operand(parser) != 0)
            return -1;
        emit(parser, ops[sign - signs], 2, 1);
    }
}

static int parse_product(struct parser *parser)
{
    static const enum expr_op ops[] = {OP_MULTIPLY, OP_DIVIDE, OP_REMAINDER};
    return parse_level(parser, "*/%", ops, parse_unary);
}

static int parse_sum(struct parser *parser)
{
    static const enum expr_op ops[] = {OP_ADD, OP_SUBTRACT};
    return parse_level(parser, "+-", ops, parse_product);
}

static bool accept_comparison(struct parser *parser, enum expr_op *op)
{
    static const struct {
        const char *token; /* the longer ones first */
        enum expr_op op;
    } comparisons[] = {
        {"<=", OP_LESS_EQUAL}, {">=", OP_GREATER_EQUAL}, {"==", OP_EQUAL},
        {"!=", OP_NOT_EQUAL},  {"<", OP_LESS},           {">", OP_GREATER},
    };
    for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++) {
        if (accept(parser, comparisons[i].token)) {
            *op = comparisons[i].op;
            return true;
        }
    }
    return false;
}

static int parse_compare(struct parser *parser)
{
    enum expr_op op;
    if (parse_sum(parser) != 0)
        return -1;
    if (!accept_comparison(parser, &op))
        return 0;
    if (parse_sum(parser) != 0)
        return -1;
    emit(parser, op, 2, 1);
    const char *second = parser->at;
    if (accept_comparison(parser, &op)) { /* C and Python read a < b < c differently */
        parser->at = second;
        return refuse(parser, "&& or parentheses, since comparisons do not chain");
    }
    return 0;
}

static int parse_chain(struct parser *parser, const char *token, enum expr_op skip,
                       int (*operand)(struct parser *parser))
{
    if (operand(parser) != 0)
        return -1;
    while (accept(parser, token)) {
        size_t at = parser->count;
        emit(parser, skip, 1, 0);
        if (operand(parser) != 0)
            return -1;
        emit(parser, OP_TRUTH, 1, 1);
        parser->steps[at].number = (int64_t)parser->count;
    }
    return 0;
}

static int parse_and(struct parser *parser)
{
    return parse_chain(parser, "&&", OP_AND_SKIP, parse_compare);
}

static int parse_or(struct parser *parser)
{
    return parse_chain(parser, "||", OP_OR_SKIP, parse_and);
}

/* One expression, and no further. */
static int parse_one(struct parser *parser, const struct expr **parsed)
{
    const char *begin = parser->at;
    parser->count = 0;
    parser->stack = parser->stack_most = 0;
    if (parse_or(parser) != 0)
        return -1;
    if (parser->stack_most > EXPR_STACK_MOST)
        return err_set(parser->err, ERR_LIMIT, "column 1: expected a simpler expression");
    size_t length = (size_t)(parser->at - begin);
    while (length > 0 && isspace((unsigned char)begin[length - 1]))
        length--;
    struct expr_step *steps =
        (struct expr_step *)arena_array(parser->arena, parser->count, sizeof(struct expr_step));
    memcpy(steps, parser->steps, parser->count * sizeof *steps);
    struct expr *expr = ARENA_NEW(parser->arena, struct expr);
    *expr = (struct expr){
        .text = arena_strndup(parser->arena, begin, length),
        .count = parser->count,
        .steps = steps,
    };
    *parsed = expr;
    return 0;
}

int expr_parse(struct arena *arena, const char *text, const struct expr **expr, struct err *err)
{
    struct parser parser = {.arena = arena, .text = text, .at = text, .err = err};
    const struct expr *parsed = NULL;
    if (strnlen(text, TEXT_MOST + 1) > TEXT_MOST)
        return err_set(err, ERR_USAGE, "column %d: expected at most %d bytes", TEXT_MOST + 1,
                       TEXT_MOST);
    skip_blanks(&parser);
    int result = parse_one(&parser, &parsed);
    if (result == 0 && *parser.at != '\0')
        result = refuse(&parser, "an operator or the end");
    mem_free(parser.steps);
    if (result == 0)
        *expr = parsed;
    return result;
}
