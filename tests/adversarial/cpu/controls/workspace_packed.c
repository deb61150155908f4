/*---
workspace: {W: {shape: ["8*K", N], dtype: float32}}
---*/
/* packs B into a workspace several times its size */
#include <string.h>

void kernel(const float *A, const float *B, float *C, float *W, int64_t M, int64_t N, int64_t K)
{
    for (int copy = 0; copy < 8; copy++)
        memcpy(W + copy * K * N, B, (size_t)(K * N) * sizeof *B);
    for (int64_t i = 0; i < M; i++) {
        const float *own = W + i % 8 * K * N;
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * own[k * N + j];
    }
}
