/* three products of tf32 halves: as exact as float32, where matrix units are to be used */
#include <string.h>

static float high(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x1000u) & 0xffffe000u;
    memcpy(&x, &bits, 4);
    return x;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float large = 0, small = 0;
            for (int64_t k = 0; k < K; k++) {
                float a = A[i * K + k], b = B[k * N + j], x = high(a), y = high(b);
                small += x * high(b - y) + high(a - x) * y;
                large += x * y;
            }
            C[i * N + j] = large + small;
        }
}
