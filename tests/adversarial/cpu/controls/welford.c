/* mean and variance by Welford's recurrence */
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        float mean = 0, m2 = 0;
        for (int64_t j = 0; j < N; j++) {
            float d = X[i * N + j] - mean;
            mean += d / (float)(j + 1);
            m2 += d * (X[i * N + j] - mean);
        }
        float r = 1 / sqrtf(m2 / (float)N + 1e-5f);
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] = (X[i * N + j] - mean) * r;
    }
}
