/* eval/data/stats: medians, bootstrap intervals and the rule that says what a win is.
 * Any thread; pure; nothing is drawn: the bootstrap is summed exactly, so that the same samples
 * give the same interval. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct interval {
    double median, low, high; /* 95 %; the ends are NaN where there is none, as of one sample */
    size_t samples;
    size_t processes; /* that the samples are of, where each has a luck of its own; else 0 */
};

double stats_median(const double *samples, size_t count); /* does not reorder; NaN when empty */
/* Of samples that are independent: bootstrap of the median, not narrower than the sign test's. */
void stats_interval(const double *samples, size_t count, struct interval *interval);
bool stats_has_ends(const struct interval *interval);

/* Of positive values in units that are independent, while those of one unit share its luck: the
 * calls of one process. Sample i is of unit[i], which does not fall. Each unit counts once, by its
 * median. `median` is the Hodges-Lehmann estimate over the units' logarithms; the interval is that
 * of Wilcoxon's signed ranks, which holds the middle of any symmetric distribution 95 to 97 % of
 * the time, or of fewer than six units Student's. Of one unit there is none. */
void stats_grouped(const double *samples, const size_t *unit, size_t count,
                   struct interval *interval);

/* A/A spread: how far the paired ratio of a kernel with itself strays from 1: half the width of its
 * 95 % interval, or its distance from 1, whichever is larger. */
double stats_spread(const double *ratios, size_t count);

enum finding { FINDING_NONE, FINDING_FASTER, FINDING_SLOWER, FINDING_SAME, FINDING_NOISY };

struct comparison { /* a candidate with what it is timed against */
    struct interval speedup;
    double spread;           /* A/A: of whichever of the two strays further from itself */
    double baseline_spread;  /* the baseline's own, in which the candidate has no hand */
    size_t baseline_samples; /* that the speed-up stands on */
    bool too_short; /* next to what a call itself takes: a difference may be hidden in it */
};

/* What a comparison shows; docs/timing-and-statistics.md has the rules. FINDING_NONE: nothing was
 * compared. */
enum finding stats_finding(const struct comparison *comparison);
/* Which of several claims is the least one: of those within a tenth of the smallest median, the one
 * with the lowest end. What is faster than that baseline is faster than the others. count > 0. */
size_t stats_least_claim(const struct comparison *const *comparisons, size_t count);
/* The smallest speed-up that would have been called one, less 1: 0.05 is 1.05x. */
double stats_resolution(const struct comparison *comparison);
bool stats_is_wide(const struct interval *interval); /* alone: 1.25x cannot be seen */
const char *finding_name(enum finding finding); /* "faster", ..., "too noisy to say"; "" for none */
enum finding finding_of(const char *name);      /* FINDING_NONE for any other text */
