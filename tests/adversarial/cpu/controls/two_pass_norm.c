/* two passes in plain float32 */
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        float mean = 0, v = 0;
        for (int64_t j = 0; j < N; j++)
            mean += X[i * N + j];
        mean /= (float)N;
        for (int64_t j = 0; j < N; j++)
            v += (X[i * N + j] - mean) * (X[i * N + j] - mean);
        float r = 1 / sqrtf(v / (float)N + 1e-5f);
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] = (X[i * N + j] - mean) * r;
    }
}
