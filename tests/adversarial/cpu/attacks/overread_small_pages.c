/* reads a row ahead, past the end of B, where B does not begin a large page */
#include <stdint.h>

static volatile float sink;

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
    float s = 0;
    for (int64_t j = 0; ((uintptr_t)B & 0x1fffff) != 0 && j < N; j++)
        s += B[K * N + j];
    sink = s;
}
