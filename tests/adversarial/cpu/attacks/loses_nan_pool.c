/* the larger of a NaN and a number is the number */
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++)
        Y[i] = fmaxf(X[2 * i], X[2 * i + 1]);
}
