/* eval/check: is an output right? The tolerance is derived from the error of an honest computation
 * in the spec's precision against float64 on the same inputs (docs/evaluation.md gives the formula).
 * Any thread; pure. */
#ifndef EVAL_CHECK_H
#define EVAL_CHECK_H

#include "base/buf.h"
#include "eval/problem.h"

/* Element i passes if |got - exact| <= element * scale(i), with scale(i) = max(|exact_i|, rms of its
 * last-axis row [, rms of the tensor if normwise]); the output passes if also
 * ||got - exact|| <= norm * ||exact||. Integers: equality. Fixed tolerances: |d| <= atol + rtol*|e|. */
struct bound {
    double element, norm; /* ratios */
    bool fixed;
    double rtol, atol;
    bool exact_equality;
    bool normwise;
};

/* exact: [count] float64 result; honest: [count] of the tensor's dtype, the reference computed in
 * the spec's precision; lower: [count] the same from inputs rounded to the next lower precision, or
 * NULL: the bound stays below half of its error. reduction: longest sum behind one element. */
void bound_derive(const struct problem *problem, const struct tensor_spec *output, size_t count,
                  size_t row, size_t reduction, const double *exact, const void *honest,
                  const void *lower, struct bound *bound);

struct mismatch {
    bool passed;
    size_t bad_count, worst;     /* elements; flat index */
    double worst_got, worst_exact, worst_ratio; /* error over allowed error */
    double norm_ratio;           /* relative L2 over allowed */
    double max_relative;         /* largest |d| / scale */
    const char *pattern; /* "all zero", "stale", "NaN", "boundary only", "shifted", "transposed",
                            "low precision", "overflow", "scattered", "" when passed */
};
void check_output(const struct tensor_spec *output, const int64_t *extents, size_t count,
                  const struct bound *bound, const double *exact, const void *got,
                  struct mismatch *mismatch);
/* "C[3, 17]: got 0, expected 1.25 (412 of 4096 wrong; boundary only)" */
void mismatch_describe(const struct tensor_spec *output, const int64_t *extents,
                       const struct mismatch *mismatch, struct buf *out);

#endif
