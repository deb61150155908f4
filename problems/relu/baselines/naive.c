/* The definition as a plain loop. */
#include <stdint.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++)
        Y[i] = X[i] < 0 ? 0 : X[i];
}
