/* eval/check/scale: the scale S_i of check.h, and one element's verdict. Inside eval/check only.
 */
#pragma once

#include "eval/check/check.h"

/* Two doubles: what every machine has; wider vectors would change the ABI. */
typedef double vector __attribute__((vector_size(16)));
typedef int64_t vector_mask __attribute__((vector_size(16)));

/* Elements that share a root mean square: a row, or as many as reach SCALE_LEAST. */
struct groups {
    const double *exact;
    size_t count, group;
    double least;  /* normwise: the tensor's rms; else 0 */
    double tensor; /* the tensor's rms, computed when a group has none of its own; <0: not yet */
};

void groups_init(struct groups *groups, const double *exact, size_t count, size_t row,
                 bool normwise);
/* The rms behind max(|e_i|, rms) for the group that begins at `first`; 0 only where all of e is 0.
 */
double groups_rms(struct groups *groups, size_t first);

double scale_largest(double a, double b);

/* One element: |got - e| <= ratio * max(|e|, rms) + floor, and the rules for infinities. */
struct judge {
    double ratio, rms, floor, dtype_most;
};
void judge_init(const struct bound *bound, enum dtype dtype, double rms, struct judge *judge);
bool judge_element(const struct judge *judge, double exact, double got);
double judge_allowed(const struct judge *judge, double exact);
bool judge_is_finite(const struct judge *judge, double exact); /* got is meant to be finite */

/* The name of what is wrong; called only where an output failed. */
const char *check_pattern(const struct tensor_spec *output, const int64_t *extents, size_t count,
                          const struct bound *bound, const double *exact, const void *got,
                          const struct mismatch *mismatch);
