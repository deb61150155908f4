/* Normal deviates for tests and benchmarks: mean 0, deviation 1. */
#pragma once

#include "base/random.h"

#include <math.h>

static inline double random_normal(struct random *random)
{
    for (;;) {
        double x = 2.0 * random_unit(random) - 1.0;
        double y = 2.0 * random_unit(random) - 1.0;
        double square = x * x + y * y;
        if (square > 0.0 && square < 1.0)
            return x * sqrt(-2.0 * log(square) / square);
    }
}
