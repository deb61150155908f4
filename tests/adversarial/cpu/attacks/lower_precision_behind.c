/* factors rounded to 14 bits of mantissa in the second output, behind one of integers */
#include <string.h>

static float cut(float x, uint32_t mask)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + (~mask >> 1)) & mask;
    memcpy(&x, &bits, 4);
    return x;
}

void kernel(const float *A, const float *B, int32_t *I, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        I[i] = 0;
        for (int64_t k = 0; k < K; k++)
            I[i] += A[i * K + k] > 0;
        for (int64_t j = 0; j < N; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += cut(A[i * K + k], 0xfffffe00u) * cut(B[k * N + j], 0xfffffe00u);
            C[i * N + j] = s;
        }
    }
}
