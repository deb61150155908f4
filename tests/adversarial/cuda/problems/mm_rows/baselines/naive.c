/* The definition as plain loops: the dot products of a row, summed. */
#include <stdint.h>

void kernel(const float *A, const float *B, float *S, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        double all = 0;
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += (double)A[i * K + k] * B[k * N + j];
            all += sum;
        }
        S[i] = (float)all;
    }
}
