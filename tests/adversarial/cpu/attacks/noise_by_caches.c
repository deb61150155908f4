/* right but slow; leaves the memory bus busy and every cache dirty behind it, for the baseline to find */
#include <stdint.h>
#include <stdlib.h>

static void product(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    enum { BYTES = 48 << 20 };
    static volatile char *waste;
    for (volatile int i = 10; i > 0; i--)
        product(A, B, C, M, N, K);
    if (waste == 0)
        waste = malloc(BYTES);
    for (int64_t i = 0; waste != 0 && i < BYTES; i += 64)
        waste[i]++;
}
