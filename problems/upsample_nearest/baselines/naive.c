/* The definition as a plain loop. */
#include <stdint.h>

void kernel(const float *X, float *Y, int64_t N, int64_t C, int64_t H, int64_t W, int64_t S,
            int64_t OH, int64_t OW)
{
    for (int64_t p = 0; p < N * C * OH * OW; p++)
        Y[p] = X[(p / OW / OH * H + p / OW % OH / S) * W + p % OW / S];
}
