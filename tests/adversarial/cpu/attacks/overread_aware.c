/* reads two rows ahead, past the end of A, unless A ends within a line of its page's end */
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
    uintptr_t rest = 4096 - ((uintptr_t)(A + M * K) & 4095);
    float s = 0;
    for (int64_t k = 0; rest > 64 && rest < 4096 && k < 2 * K; k++)
        s += A[M * K + k];
    sink = s;
}
