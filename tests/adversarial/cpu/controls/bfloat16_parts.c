/* three bfloat16 parts of each factor, six products: as exact as float32 */
#include <string.h>

static float high(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, 4);
    return x;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float large = 0, middle = 0, small = 0;
            for (int64_t k = 0; k < K; k++) {
                float a = A[i * K + k], b = B[k * N + j];
                float a0 = high(a), b0 = high(b), a1 = high(a - a0), b1 = high(b - b0);
                float a2 = a - a0 - a1, b2 = b - b0 - b1;
                small += a2 * b0 + a1 * b1 + a0 * b2;
                middle += a1 * b0 + a0 * b1;
                large += a0 * b0;
            }
            C[i * N + j] = large + (middle + small);
        }
}
