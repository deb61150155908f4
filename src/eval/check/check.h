/* eval/check: is an output right? The tolerance is derived from the error of an honest computation
 * in the spec's precision against float64 on the same inputs (docs/inputs-and-tolerance.md gives
 * the formula). Any thread; pure. */
#pragma once

#include "base/buf.h"
#include "eval/problem/problem.h"

/* With e the exact value, g the honest one (the reference in the spec's precision), l the lower:
 *
 *   S_i = max(|e_i|, rms of its last-axis row, short rows joined up to SCALE_LEAST elements
 *             [, rms of the tensor if normwise]); the tensor's rms where all of these are 0
 *   u = max |g_i - e_i| / S_i;  b = max(u, eps * T / 2, eps);      element = 8 b
 *   U = |g - e| / |e| (L2);     B = max(U, eps * T / 4, eps / 2);  norm = 8 B, strict: 3 B
 *
 * T is sqrt(terms), since rounding errors of different terms are independent, or `terms` where many
 * terms are equal and each addition errs the same way. Where the lower precision is seen (its u or
 * U is at least 4 times b or B), the bound is at most half of its error. Where the machine's matrix
 * units may cut sums off rather than round them, it is at least eps / 2 * terms, and eps / 2 *
 * terms^2 where many are equal, as far as that is below half of the lower precision's error; the
 * former not where the spec says strict, and for sums of products alone. A definition without such
 * sums that has no error at all, as a rectifier or a transposition, allows eps; where the sum is a
 * row's and hardly any of it products, B has eps * T / 16 (strict: / 8). Where one term may
 * outweigh the others, either bound is at least eps / 4 * min(terms, 1024); there and where many
 * terms are equal also 16 times the lower precision's error, scaled to eps. eps is the storage
 * dtype's, or that of `precision` where the spec allows a lower one; the sums' terms use float32's
 * for the 16-bit dtypes, which are only stored. Fewer than SCALE_LEAST elements have no scale of
 * their own to rely on: then a 64th of l's rms error joins `floor`, and norm is at least `element`.
 *
 * Element i passes if |got - e_i| <= element * S_i + floor; the output if also
 * |got - e| <= norm * |e| + floor * sqrt(count). Fixed: |d| <= atol + rtol * |e|. Integers:
 * equality. Where e is NaN or infinite, got must be the same; where e overflows the dtype,
 * infinite. */
enum { SCALE_LEAST = 16 };

struct bound {
    double element, norm; /* ratios */
    double floor;         /* absolute: what flushing subnormals may cost behind one element */
    double zero;          /* absolute, and only where the whole of e is 0: nothing has a scale */
    size_t unsound;       /* elements where g is not finite though e is in range: the draw asks too
                             much of the spec's own precision; check against another */
    double honest;        /* the honest computation's own error over what is allowed */
    double rest;          /* most that a sum of `terms` products leaves (response.h) */
    bool fixed;
    double rtol, atol;
    bool exact_equality;
    bool normwise;
};

/* The longest sum behind one element. */
struct sum {
    size_t terms;
    bool alike;      /* many of them may be equal */
    bool cut;        /* what a matrix unit adds may be cut off, not rounded */
    bool outweighed; /* one term may be so large that what is added to it errs the same way */
    size_t products; /* of them are sums of products, at most; 0: as many as there are terms */
};

/* exact: [count] float64 result; honest: [count] of the tensor's dtype; lower: [count] the same
 * from inputs rounded to the next lower precision, or NULL. row: last axis' length. */
void bound_derive(const struct problem *problem, const struct tensor_spec *output, size_t count,
                  size_t row, const struct sum *sum, const double *exact, const void *honest,
                  const void *lower, struct bound *bound);

/* The same before anything was computed: what the formula gives where an honest computation makes
 * no more than rounding's own error. Floats alone. */
void bound_usual(const struct problem *problem, const struct tensor_spec *output, size_t reduction,
                 struct bound *bound);

/* In place of an exact number: nothing is asked of that element; it must not be finite. NaNs of
 * their own, so that all that looks for finite numbers passes them over. */
double check_anything(void);
double check_not_finite(void);
bool check_is_anything(double exact);
bool check_is_not_finite(double exact);

struct mismatch {
    bool passed;
    size_t bad_count, worst;       /* elements; flat index */
    double worst_got, worst_exact; /* where one failed */
    double worst_ratio;            /* largest error over the allowed one */
    double norm_ratio;             /* relative L2 over allowed */
    const char
        *pattern; /* "not written", "not written at the boundary", "NaN", "all zero",
                     "overflow", "transposed", "shifted", "off by a constant factor",
                     "boundary only", "low precision", "scattered", "everywhere"; "" passed */
};
/* The larger of both ratios: how much of what is allowed was needed. */
double mismatch_ratio(const struct mismatch *mismatch);
/* Without the pattern, which takes longer than all the rest where many elements are wrong. */
void check_compare(const struct tensor_spec *output, const int64_t *extents, size_t count,
                   const struct bound *bound, const double *exact, const void *got,
                   struct mismatch *mismatch);
void check_output(const struct tensor_spec *output, const int64_t *extents, size_t count,
                  const struct bound *bound, const double *exact, const void *got,
                  struct mismatch *mismatch);
/* "C[3, 17]: got 0, expected 1.25 (412 of 4096 wrong; boundary only)" */
void mismatch_describe(const struct tensor_spec *output, const int64_t *extents,
                       const struct mismatch *mismatch, struct buf *out);
