/* eval/check/response: how much of a small change of an input has reached an output. Any thread;
 * pure.
 *
 * With e the exact value, c the exact one of inputs that lack that change, and got the kernel's:
 * over all elements, each divided by its scale S_i (check.h), got - e is regressed on e - c and on
 * e itself. A kernel that sees the change leaves got - e to its own rounding, which knows nothing
 * of e - c: a slope of 0, a share of 1. One that does not see it gives c: a slope of -1, a share
 * of 0, however small the change is beside what each element errs by. */
#pragma once

#include "eval/problem/problem.h"

struct response {
    double share;
    double error; /* its standard error; INFINITY where too few elements have any of the change */
    double size;  /* mean square of (e - c) / S_i */
    double rest;  /* root mean square of what neither e - c nor e explains of (got - e) / S_i */
};

/* exact, changed (c), got: [count]. What is not finite is left out. */
void response_measure(const struct tensor_spec *output, const int64_t *extents, size_t count,
                      const double *exact, const double *changed, const float *got,
                      struct response *response);

/* The same where what changed is some terms of sums: `part`, [count], is what these add, which is
 * left out as e is. */
void response_of_part(const struct tensor_spec *output, const int64_t *extents, size_t count,
                      const double *exact, const double *changed, const double *part,
                      const float *got, struct response *response);

/* The same of blocks: rows, columns, and tiles of 16 to 128 of the last two axes. A kernel may lose
 * bits in a few of them alone. What chance leaves is taken from how much the slopes of all blocks
 * of a size differ (their median, so that some lost ones do not count), times what only one family
 * of blocks in a million exceeds. */
struct blocks {
    double off;           /* the largest distance of a block's share from 1, beyond chance */
    size_t rows, columns; /* of that block */
    double rest;          /* the largest `rest` of a block of 1,024 elements or more */
};
void response_blocks(const struct tensor_spec *output, const int64_t *extents, size_t count,
                     const double *exact, const double *changed, const float *got,
                     struct blocks *blocks);
