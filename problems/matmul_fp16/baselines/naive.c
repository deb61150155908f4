/* The definition as plain loops: sums in float32 over k, rounded once to float16. */
#include <math.h>
#include <stdint.h>
#include <string.h>

static float number(uint16_t bits)
{
    uint32_t wide = (uint32_t)(bits & 0x7fff) << 13;
    float x;
    memcpy(&x, &wide, 4);
    x = (bits & 0x7c00) == 0x7c00 ? ((bits & 0x3ff) != 0 ? NAN : INFINITY) : x * 0x1p112f;
    return bits >> 15 ? -x : x;
}

static uint16_t rounded(float x)
{
    float size = fabsf(x), small = size + 0.5f; /* whose last bit is float16's smallest number */
    uint32_t bits, small_bits;
    memcpy(&bits, &size, 4);
    memcpy(&small_bits, &small, 4);
    uint32_t half = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
    if (size < 0x1p-14f)
        half = small_bits - 0x3f000000;
    if (size >= 65520.0f)
        half = 0x7c00;
    if (x != x)
        half = 0x7e00;
    return (uint16_t)(half | (signbit(x) ? 0x8000u : 0u));
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
