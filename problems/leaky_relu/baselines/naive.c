/* The definition as a plain loop. */
#include <stdint.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++) {
        float x = X[i];
        Y[i] = x > 0 ? x : 0.01f * x;
    }
}
