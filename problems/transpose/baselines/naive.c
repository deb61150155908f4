/* The definition as plain loops. */
#include <stdint.h>

void kernel(const float *A, float *B, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++)
            B[j * M + i] = A[i * N + j];
}
