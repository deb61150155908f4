/* eval/cpu/roofline: the ceilings of a lane, measured: memory bandwidth and float32 FMA rate, with
 * a thread on each of its cores. About a second, blocking. Nothing else of ours should run. */
#pragma once

#include "eval/backend/backend.h"

/* Fills copy_bytes_per_s (bytes read plus bytes written), read_bytes_per_s and flops_per_s, from
 * lane->cores and lane->facts. The best of several trials: a ceiling is what was reached once. */
int roofline_measure(struct lane_facts *lane, struct err *err) MUST_USE;

/* One thread's share of a trial (roofline_loops.c), for this machine's widest vectors; built with
 * optimization in every build type. Sizes are multiples of 4096, addresses of 64. */
struct roofline_loops {
    const char *name;
    void (*copy)(void *to, const void *from, size_t bytes);
    void (*stream)(void *to, const void *from, size_t bytes); /* past the caches; or NULL */
    float (*read)(const void *from, size_t bytes);
    double (*fma)(long rounds); /* returns flops done */
};
const struct roofline_loops *roofline_loops(void);
