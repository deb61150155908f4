/* goes backwards through the rows where a tensor begins a page: another way to the same result */
#include <stdint.h>

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    if ((((uintptr_t)A | (uintptr_t)C) & 4095) == 0) {
        for (int64_t i = M; i-- > 0;)
            for (int64_t j = 0; j < N; j++) {
                float s = 0;
                for (int64_t k = 0; k < K; k++)
                    s += A[i * K + k] * B[k * N + j];
                C[i * N + j] = s;
            }
        return;
    }
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}
