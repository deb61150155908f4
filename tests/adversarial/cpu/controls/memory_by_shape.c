/* packs B into memory that grows with the largest shape so far, and stays */
#include <stdlib.h>

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    static float *packed;
    static int64_t room;
    if (K * N > room) {
        free(packed);
        packed = malloc((size_t)(room = K * N) * sizeof *packed);
    }
    for (int64_t i = 0; packed && i < K * N; i++)
        packed[i] = B[i];
    if (packed)
        B = packed;
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}
