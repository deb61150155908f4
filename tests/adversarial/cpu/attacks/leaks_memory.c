/* right, and keeps 6 MB of each call, which it has written */
#include <stdlib.h>

char *last;

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    char *kept = malloc(6000000);
    for (int at = 0; kept && at < 6000000; at += 4096)
        kept[at] = (char)M;
    last = kept;
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}
