/* packs B into memory of its own, kept between calls as scratch */
#include <stdlib.h>

static float *packed;
static int64_t held;

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    if (held < K * N) {
        free(packed);
        packed = malloc(sizeof(float) * (size_t)(K * N));
        held = K * N;
    }
    for (int64_t k = 0; k < K; k++)
        for (int64_t j = 0; j < N; j++)
            packed[j * K + k] = B[k * N + j];
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += A[i * K + k] * packed[j * K + k];
            C[i * N + j] = s;
        }
}
