/* variance as the mean of squares less the square of the mean, which cancels for large means */
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        float s = 0, q = 0;
        for (int64_t j = 0; j < N; j++) {
            s += X[i * N + j];
            q += X[i * N + j] * X[i * N + j];
        }
        float mean = s / (float)N, variance = fmaxf(q / (float)N - mean * mean, 0);
        float scale = 1 / sqrtf(variance + 1e-5f);
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] = (X[i * N + j] - mean) * scale;
    }
}
