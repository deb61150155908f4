/* base/expr: the integer expressions of launch plans, shapes, floors and `where` clauses.
 * Grammar: integers, names, + - * / %, comparisons (< <= > >= == !=), && || !, parentheses,
 * min(a,b,...) max(a,b,...) ceil_div(a,b) round_up(a,b) next_pow2(a). No side effects. 64-bit
 * signed; overflow, division by zero and unknown names are errors. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct expr; /* opaque; belongs to the arena it was parsed into */

/* Looks a name up; false where it is not known. */
typedef bool expr_lookup(void *context, const char *name, int64_t *number);

/* At most 4096 bytes of text, 64 levels. Errors: ERR_USAGE, "column 7: expected ...". */
int expr_parse(struct arena *arena, const char *text, const struct expr **expr,
               struct err *err) MUST_USE;

int expr_eval(const struct expr *expr, expr_lookup *lookup, void *context, int64_t *number,
              struct err *err) MUST_USE;

/* Calls `visit` with every name that stands in the expression (a name may come twice). */
void expr_names(const struct expr *expr, void (*visit)(void *context, const char *name),
                void *context);

/* The same as Python reads it, in the arena. Where Python has other operators the text calls
 * functions that its reader has to have: div(a, b) and rem(a, b), which round toward zero,
 * ceil_div(a, b), round_up(a, b), next_pow2(a). No overflow is seen there. */
const char *expr_to_python(struct arena *arena, const struct expr *expr);
/* As JavaScript reads it; names are members of `s`: s.M. */
const char *expr_to_javascript(struct arena *arena, const struct expr *expr);

/* Names with numbers, the commonest context: expr_lookup_names takes a struct names *. */
struct names {
    size_t count;
    const char *name[64];
    int64_t number[64];
};
int names_set(struct names *names, const char *name, int64_t number, struct err *err) MUST_USE;
bool expr_lookup_names(void *context, const char *name, int64_t *number);
