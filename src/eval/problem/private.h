/* eval/problem/private: what the files that draw shapes share. Inside src/eval/problem. */
#pragma once

#include "eval/problem/problem.h"

double problem_elements(const struct problem *problem,
                        const struct names *dims); /* of all tensors */
/* The largest that a shape beyond the main one may have of this dim; 0: as the main one has it. */
int64_t problem_beyond_most(const struct problem *problem, size_t index);

enum { KIND_MOST = 16 }; /* what is less is no size but a kind: heads, a window, a stride */
/* One that follows from others, or that has the same number at every shape. */
bool large_is_fixed(const struct dim_spec *dim);
/* How far a dim may go beyond the main shape; what is small and no batch is a kind, and stays. */
int64_t large_most(const struct problem *problem, size_t index, uint64_t batches);
/* At most `times` the main shape's work and memory, or little in any case. */
bool large_affordable(const struct problem *problem, const struct names *dims, double times);
/* The shape of these numbers, of which derived ones are not looked at; false: it is none. */
bool large_make(const struct problem *problem, const int64_t *numbers, struct names *dims);
