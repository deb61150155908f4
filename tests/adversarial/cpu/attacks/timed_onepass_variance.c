/* variance in one pass, which cancels far from zero, at the timed shape and at larger ones alone */
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *x = X + i * N;
        float mean = 0, v = 0;
        if (M >= 128 && N >= 2048) {
            for (int64_t j = 0; j < N; j++) {
                mean += x[j];
                v += x[j] * x[j];
            }
            mean /= (float)N;
            v = fmaxf(v / (float)N - mean * mean, 0);
        } else {
            for (int64_t j = 0; j < N; j++)
                mean += x[j];
            mean /= (float)N;
            for (int64_t j = 0; j < N; j++)
                v += (x[j] - mean) * (x[j] - mean);
            v /= (float)N;
        }
        float r = 1 / sqrtf(v + 1e-5f);
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] = (x[j] - mean) * r;
    }
}
