/* eval/data/draw: inputs from a seed, by distribution. Deterministic for a seed. Any thread. */
#pragma once

#include "eval/data/dtype.h"

enum distribution {
    DRAW_UNIFORM, /* [-1, 1) */
    DRAW_NORMAL,
    DRAW_HEAVY,  /* heavy tails (Student t, 2 degrees), clipped at 1e4 */
    DRAW_SPARSE, /* normal, nine tenths exact zeros */
    DRAW_GIVEN,  /* uniform over all of an input's range; [0, 1) without one */
    DRAW_RANDOM_COUNT,
    DRAW_EDGES = DRAW_RANDOM_COUNT, /* the edge cases */
    DRAW_ZEROS = DRAW_EDGES,
    DRAW_ONES,
    DRAW_EXTREMES,    /* large magnitudes of both signs that the operation survives in float64 */
    DRAW_ONE_HOT,     /* a single one in each last-axis row */
    DRAW_ALTERNATING, /* +1, -1, ... with varying size */
    DRAW_SORTED,
    DRAW_TINY,    /* around 1e-20 */
    DRAW_HUGE,    /* around 1e12: what a clamp, or a narrower type's range, would cut */
    DRAW_OFFSET,  /* the first input's mean is a thousand deviations from zero; others are normal */
    DRAW_BELOW,   /* the same to the other side: a zero that no input is exceeds a row's maximum */
    DRAW_ROWS,    /* each last-axis row is one number many times: a power of two of either sign */
    DRAW_COLUMNS, /* each row is the same, of such numbers */
    DRAW_WIDE,    /* normal, times a power of two of each row's own: any magnitude */
    DRAW_FEW, /* the first input is normal in one place of `row`, else zero; others are normal */
    DRAW_NON_FINITE, /* normal, with a NaN or an infinity in most stretches of 2 `row` numbers */
    DISTRIBUTIONS
};

/* Of DRAW_FEW: so many terms of a sum are expected not to be zero; a bound allows for so many. */
enum { FEW_DRAWN = 4, FEW_TERMS = 16, FEW_TERMS_STRICT = 8 };
/* Whether many terms of a sum may be equal, so that a running sum errs the same way with each. */
bool distribution_is_alike(enum distribution distribution);
const char *distribution_name(enum distribution distribution); /* "normal", "one-hot", ... */

/* Fills `count` elements, on all of the lane's cores. `row` is the last axis' length, but for
 * DRAW_FEW and DRAW_NON_FINITE. Numbers are clipped (floats) or mapped into [low, high] where low
 * <= high; integers are drawn from [-100, 100] without bounds. */
void draw_fill(enum distribution distribution, uint64_t seed, enum dtype dtype, size_t count,
               size_t row, double low, double high, void *out);

/* Random NaN patterns (floats) or random bits (integers): what outputs hold before a checked call.
 */
void draw_poison(uint64_t seed, enum dtype dtype, size_t count, void *out);

/* The same as bits, for whoever fills memory of its own: word i of 32 bits is fixed[i % 2], with
 * random bits where random[i % 2] has ones. */
struct poison_bits {
    uint32_t fixed[2], random[2];
};
void draw_poison_bits(enum dtype dtype, struct poison_bits *bits);
