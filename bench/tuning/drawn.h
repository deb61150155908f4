/* bench/tuning/drawn: times of a space's points as a function drawn from the model that impact is
 * told by (src/tuning/tuning.h), so that nothing which the model assumes of them is wrong. */
#pragma once

#include "eval/candidate/candidate.h"

enum { DRAWN_MAX = 384 }; /* points */

/* Their logarithms are normal with a deviation of 0.2; how much each parameter does, alone and with
 * others, is by chance too: hands between 0.01 and 8, about what fits of recorded tables have. */
void drawn_times(size_t parameters, const struct tune_parameter *lists, size_t count,
                 const int64_t *points, uint64_t seed, double *time_ns);
