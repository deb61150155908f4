/* agents/search/run/select: which kernels become the parents of the next round. Pure; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct contender {
    double time_high; /* upper end of the time's interval; 0 or NaN: not known, the last */
    double time_ns;   /* median; breaks ties */
    int64_t number;   /* of the candidate: the older one first among equals */
    void *item;       /* the caller's */
};

/* Best first, by the upper end of the time's interval: a lucky median with a wide one is no parent.
 * Not by speed-ups, which were taken against the baseline at different moments. */
void select_sort(struct contender *contenders, size_t count);

/* How many of `count` kept kernels stay: `beam` where it is positive, else ceil(share x count); at
 * least one, at most all; 0 of 0. */
size_t select_count(size_t count, double share, int64_t beam);
