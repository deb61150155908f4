#include "tuning/tuning.h"

#include <math.h>

void tuning_judge_ladder(struct tuning_ladder *ladder)
{
    double sum = 0, squares = 0, count = 0;
    ladder->right = ladder->count > 0;
    ladder->unsteady = false;
    for (size_t i = 0; i < ladder->count; i++) {
        const struct tuning_rung *rung = &ladder->rungs[i];
        ladder->right = ladder->right && rung->right;
        ladder->unsteady = ladder->unsteady || !rung->right || rung->finding == FINDING_SLOWER ||
                           rung->finding == FINDING_NOISY || rung->finding == FINDING_NONE;
        if (rung->speedup.samples == 0)
            continue;
        sum += rung->speedup.median;
        squares += rung->speedup.median * rung->speedup.median;
        count++;
    }
    ladder->stable = ladder->right && !ladder->unsteady && ladder->count == ladder->wanted;
    double mean = sum / count;
    ladder->variation =
        count < 2 ? NAN : sqrt(fmax(0, (squares - count * mean * mean) / (count - 1))) / mean;
}
