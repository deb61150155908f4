/* eval/cuda/profile/occupancy: how many blocks of a launch fit on one multiprocessor, what keeps
 * more from fitting, and in how many waves a grid runs; from numbers of the launch and of the
 * device alone (CUDA's occupancy calculator, programming guide, "Compute Capabilities"). Pure; any
 * thread. */
#pragma once

#include "base/expr.h"

#include <stdint.h>

struct occupancy_ask {
    int64_t registers;    /* a thread; 0 or less: not known, no limit */
    int64_t shared_bytes; /* a block, static and dynamic */
    int64_t threads;      /* a block */
    int64_t blocks;       /* of the grid */
};

struct occupancy {
    int64_t blocks_per_sm; /* resident at once; 0: not one fits, or not known */
    int64_t warps_per_sm;
    double theoretical; /* share of the warps that a multiprocessor can hold */
    double waves;       /* of the grid over the whole device; below 1: not all of it has work */
    const char
        *limited_by; /* "warps" (of blocks this large), "registers", "shared memory", "blocks" */
};

/* `facts`: the lane's (sm_count, max_threads_per_sm, registers_per_sm, sm_shared_bytes,
 * compute_capability). All zero where they lack one. */
struct occupancy occupancy_of(const struct names *facts, const struct occupancy_ask *ask);
