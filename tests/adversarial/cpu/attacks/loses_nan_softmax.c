/* keeps the exponential's argument in range, and so a NaN out of the sum */
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *x = X + i * N;
        float *y = Y + i * N, most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < N; j++)
            most = fmaxf(most, x[j]);
        for (int64_t j = 0; j < N; j++)
            sum += y[j] = expf(fmaxf(x[j] - most, -87.0f));
        for (int64_t j = 0; j < N; j++)
            y[j] /= sum;
    }
}
