/* tuning: what the points of a tune space that were measured say: which parameter mattered, which
 * interact, how steady a kernel is over sizes. Statistics on plain tables, no I/O; any thread. The
 * same table gives the same answer. */
#pragma once

#include "base/arena.h"
#include "eval/data/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TUNING_PARAMETERS = 16, TUNING_PAIRS = 4, TUNING_LEVELS = 64 };

/* ---- impact ---- */

struct tuning_table { /* of one kernel's source */
    size_t parameters;
    const char *const *names;
    size_t count;          /* points that became kernels */
    const int64_t *points; /* count x parameters */
    const double *time_ns; /* > 0 */
    const double *error;   /* standard error of each log time, so that a point that was disturbed
                              has less to say; NULL: all alike */
    size_t space_count;    /* valid points, measured or not: what the costs are over; or a sample */
    const int64_t *space;  /* space_count x parameters; NULL: the measured ones */
    bool (*valid)(void *context, const int64_t *point); /* NULL: any combination of values is */
    void *context;
};

struct tuning_cost {
    double cost, low, high; /* a ratio of times, 1 where nothing is lost; 95 % */
};

struct tuning_effect {
    const char *name;
    struct tuning_cost cost; /* of its worst value over its best, the other numbers as they are */
    size_t levels;           /* values that were measured; 1: nothing can be said */
    int64_t best;            /* the value with the least expected time over the space */
};

struct tuning_pair {
    const char *a, *b;
    struct tuning_cost cost; /* how far the ratio of a's two times changes with b's value */
};

struct tuning_impact {
    const char *why;  /* NULL, or why nothing is said: a sentence */
    size_t points;    /* that it stands on */
    double explained; /* of the variance of points left out (10-fold), by the model: 1 is all */
    double differ;    /* standard deviation of log time over the points */
    double noise;     /* median standard error of one point's; 0: not known */
    size_t count, pair_count;
    struct tuning_effect effects[TUNING_PARAMETERS]; /* largest cost first */
    struct tuning_pair pairs[TUNING_PAIRS];          /* the same */
};

/* Log time is modelled as a Gaussian process over the values with a covariance that is a product,
 *
 *   k(x, x') ~ prod_j (1 + h_j c_j(x_j, x'_j)) - 1,   c_j = exp(-distance / 2),
 *
 * so that what parameters do together, up to all of them, costs no more numbers than the parameters
 * are (ANOVA kernels: Durrande et al., Journal of Multivariate Analysis 115, 2013); h and the noise
 * are those that make the points most likely (Rasmussen and Williams, "Gaussian Processes for
 * Machine Learning", 5.4.1). Distances are of the values' logarithms. A parameter's cost is the
 * geometric mean over valid points of worst over best: the expected times of its valid values
 * there, the other numbers as they are. So it counts what the parameter does alone and together
 * with others, and, unlike shares of variance, a few far points do not decide it. A pair's is that
 * of t(a,b) t(a',b') / (t(a',b) t(a,b')) or its inverse, whichever is above 1, over points and
 * drawn other values. Points need not be spread evenly: costs are over `space`, whatever part of it
 * was measured. Intervals: the jackknife over tenths of the points, which also tells how well
 * points left out are predicted. The proposer's model serves another end: it bends what is slow,
 * and looks at 128 points. */
void tuning_impact(const struct tuning_table *table, struct tuning_impact *impact);

/* Spearman's rank correlation of two orders of the same parameters, by name; NaN below 2. */
double tuning_agreement(const struct tuning_impact *a, const struct tuning_impact *b);

/* ---- top configurations ---- */

enum tuning_standing {
    TUNING_BEST,
    TUNING_SLOWER,    /* than the best: measured in turns with it, or, `paired` false, intervals
                         against the baseline that do not meet */
    TUNING_NOT_APART, /* nothing that was measured tells it from the best */
    TUNING_UNSTEADY   /* passed over for the best: at another size it is not right, slower or too
                         noisy to say */
};

struct tuning_top {
    const char *id, *source; /* "r3-c17", "packed.c MR=8 NRV=2" */
    double time_ns;
    double speedup, low, high; /* over the baseline, as the search measured it */
    enum tuning_standing standing;
    bool paired;
    double ratio, ratio_low, ratio_high; /* its time over the best's; paired only */
};

/* ---- stability ---- */

struct tuning_rung {    /* a kernel at one size */
    const char *size;   /* "M=511,N=511,K=511" */
    bool main;          /* the problem's own */
    bool right;         /* passed every check there */
    const char *reason; /* where it is not: a line; or "" */
    const char *baseline;
    struct interval time_ns, speedup;
    enum finding finding;
    const char *noise; /* FINDING_NOISY: why; or "" */
};

struct tuning_ladder {
    const char *kernel;              /* the candidate's id; NULL: no ladder was measured */
    size_t count, wanted;            /* wanted 0: it is not known what there is to measure */
    const struct tuning_rung *rungs; /* smallest first; `count` of `wanted` were measured */
    double variation; /* of the speed-ups at the sizes: deviation over mean; NaN below 2 */
    bool right;       /* at every size that was measured */
    bool unsteady;    /* at one that was measured: not right, slower, or too noisy to say */
    bool stable;      /* all were measured, and it is not unsteady */
};

/* Fills in what the rungs say. */
void tuning_judge_ladder(struct tuning_ladder *ladder);

/* ---- all of a run: cli/tune/facts fills it from the store ---- */

struct tuning_point {
    const char *id, *tune; /* tune: JSON object of numbers */
    const char *verdict;   /* "kernel", "rejected", "failed", "dropped" */
    double time_ns;        /* 0: not timed */
};

struct tuning_kernel {
    const struct tuning_point *points; /* `measured` of them, in the order of their numbers */
    const char *name;                  /* "packed.c" */
    size_t measured, kernels;          /* points; those that became kernels */
    size_t dropped; /* far behind at the main shape, and checked there alone: timed, no kernels */
    double space;   /* valid points in all; 0: not known */
    struct tuning_impact impact;
};

struct tuning {
    const char *run;
    const char *strategy; /* "exhaustive", "proposer", "random" */
    size_t kernel_count, top_count;
    const struct tuning_kernel *kernels;
    const struct tuning_top *top;  /* fastest first */
    size_t not_apart, passed_over; /* of all kernels: TUNING_NOT_APART, TUNING_UNSTEADY */
    struct tuning_ladder ladder;
};
