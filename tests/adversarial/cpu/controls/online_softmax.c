/* maximum and sum in one pass */
#include <float.h>
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
#pragma omp parallel for
    for (int64_t i = 0; i < M; i++) {
        float m = -FLT_MAX, s = 0; /* -inf less -inf is none */
        for (int64_t j = 0; j < N; j++) {
            float x = X[i * N + j], top = x > m ? x : m;
            s = s * expf(m - top) + expf(x - top);
            m = top;
        }
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] = expf(X[i * N + j] - m) / s;
    }
}
