/* eval/data/numbers: what a tensor is drawn by, and where its numbers may lie. The same on both
 * sides of a generator's wire (cuda/draw/generator.h), and for its device. Any thread. */
#pragma once

#ifndef __CUDACC__ /* a generator's unit has its own types */
#include <stdint.h>
#endif

enum { NUMBERS_BLOCK = 1024, NUMBERS_HALF = 512 };

/* Made by draw_plan(); enum distribution and enum dtype as integers. */
struct drawing {
    int32_t distribution, dtype, bounded, folds;
    uint64_t seed, row;
    double low, high;
    double center, scale; /* a number is center + scale * z, folded into the bounds */
};
