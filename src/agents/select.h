/* agents/select: which kernels become the parents of the next round. Pure; any thread. */
#ifndef AGENTS_SELECT_H
#define AGENTS_SELECT_H

#include <stddef.h>
#include <stdint.h>

struct contender {
    double speedup_low; /* lower end of the interval; NaN counts as 0 */
    double time_ns;     /* median; breaks ties */
    int64_t number;     /* of the candidate: the older one first among equals */
    void *item;         /* the caller's */
};

/* Best first, by the lower end of the interval. */
void select_sort(struct contender *contenders, size_t count);

/* How many of `count` kept kernels stay: `beam` where it is positive, else ceil(share x count); at
 * least one, at most all; 0 of 0. */
size_t select_count(size_t count, double share, int64_t beam);

#endif
