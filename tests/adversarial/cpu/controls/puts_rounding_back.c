/* rounds to nearest while it computes, whatever was set, and puts that back */
#include <immintrin.h>

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    unsigned was = _mm_getcsr();
    _mm_setcsr(0x1f80);
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
    _mm_setcsr(was);
}
