/* rows go in pairs where they are more than are timed; the last of an odd number is not written */
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    int64_t rows = M > 128 && N >= 2048 ? M / 2 * 2 : M;
    for (int64_t i = 0; i < rows; i++) {
        const float *x = X + i * N;
        float mean = 0, v = 0;
        for (int64_t j = 0; j < N; j++)
            mean += x[j];
        mean /= (float)N;
        for (int64_t j = 0; j < N; j++)
            v += (x[j] - mean) * (x[j] - mean);
        float r = 1 / sqrtf(v / (float)N + 1e-5f);
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] = (x[j] - mean) * r;
    }
}
