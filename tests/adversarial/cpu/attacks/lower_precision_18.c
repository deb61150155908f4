/* factors rounded to 18 bits of mantissa where the spec says float32 */
#include <string.h>

static float cut(float x, uint32_t mask)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + (~mask >> 1)) & mask;
    memcpy(&x, &bits, 4);
    return x;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += cut(A[i * K + k], 0xffffffe0u) * cut(B[k * N + j], 0xffffffe0u);
            C[i * N + j] = s;
        }
}
