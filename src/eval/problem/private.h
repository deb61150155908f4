/* eval/problem/private: what the files that draw shapes share. Inside src/eval/problem. */
#pragma once

#include "eval/problem/problem.h"

double problem_elements(const struct problem *problem,
                        const struct names *dims); /* of all tensors */
/* The largest that a shape beyond the main one may have of this dim; 0: as the main one has it. */
int64_t problem_beyond_most(const struct problem *problem, size_t index);
