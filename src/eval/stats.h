/* eval/stats: medians, bootstrap intervals and the rule that says what a win is.
 * Any thread; pure; nothing is drawn: the bootstrap is summed exactly, so that the same samples
 * give the same interval. */
#ifndef EVAL_STATS_H
#define EVAL_STATS_H

#include <stdbool.h>
#include <stddef.h>

struct interval {
    double median, low, high; /* bootstrap 95 % of the median; not narrower than the sign test's */
    size_t samples;
};

double stats_median(const double *samples, size_t count); /* does not reorder; NaN when empty */
void stats_interval(const double *samples, size_t count, struct interval *interval);

/* A/A spread: how far the paired ratio of a kernel with itself strays from 1: half the width of its
 * 95 % interval, or its distance from 1, whichever is larger. */
double stats_spread(const double *ratios, size_t count);

/* A win is an interval whose lower end exceeds 1 + max(1 %, 3 x the A/A spread). */
bool stats_win(const struct interval *speedup, double spread);

#endif
