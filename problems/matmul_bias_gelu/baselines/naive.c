/* The definition, a row of B at a time. */
#include <math.h>
#include <stdint.h>

void kernel(const float *A, const float *B, const float *bias, float *C, int64_t M, int64_t N,
            int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        float *c = C + i * N;
        for (int64_t j = 0; j < N; j++)
            c[j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                c[j] += A[i * K + k] * B[k * N + j];
        for (int64_t j = 0; j < N; j++) {
            float x = c[j] + bias[j];
            c[j] = 0.5f * x * erfcf(-x * 0.70710678f);
        }
    }
}
