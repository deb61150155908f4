/* The definition as plain loops: sums in float32 over k, rounded once to bfloat16. */
#include <stdint.h>
#include <string.h>

static float number(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, 4);
    return x;
}

static uint16_t rounded(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void kernel(const uint16_t *A, const uint16_t *B, uint16_t *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            float sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += number(A[m * K + k]) * number(B[k * N + n]);
            C[m * N + n] = rounded(sum);
        }
}
