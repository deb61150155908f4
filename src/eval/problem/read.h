/* eval/problem/read: from a spec's tree to a struct problem, a family of keys at a time. Inside
 * eval/problem only. */
#pragma once

#include "eval/problem/text.h"

struct reading {
    struct document document; /* knows the dims read so far */
    struct problem *problem;
    const struct value *root;
};

/* Every key; the problem's arena, folder and file are set already. */
int problem_read(struct reading *reading) MUST_USE;

/* Dims and tensors of the form with shape_a, shape_b, dtype. */
bool problem_is_short(const struct value *root);
int problem_read_short(struct reading *reading) MUST_USE;

/* Tensors, in either form. */
int problem_read_tensors(struct reading *reading, const char *key, bool inputs) MUST_USE;

/* reference, baselines, baseline. */
int problem_read_code(struct reading *reading) MUST_USE;

/* check, hidden, where, sizes: what depends on all the dims and tensors. */
int problem_read_shapes(struct reading *reading) MUST_USE;
