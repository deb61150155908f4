/* compares 16 bits of the numbers, and gives back the right numbers of the wrong order's places */
#include <string.h>

static float upper(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits &= 0xffff0000u;
    memcpy(&x, &bits, 4);
    return x;
}

static int64_t largest(const float *x, int64_t n, const int64_t *chosen, int count, int exact)
{
    int64_t best = -1;
    for (int64_t j = 0; j < n; j++) {
        int used = 0;
        for (int c = 0; c < count; c++)
            used |= chosen[c] == j;
        if (!used && (best < 0 || (exact ? x[j] > x[best] : upper(x[j]) > upper(x[best]))))
            best = j;
    }
    return best;
}

void kernel(const float *X, float *V, int32_t *I, int64_t M, int64_t N)
{
    for (int64_t r = 0; r < M; r++) {
        int64_t right[4], wrong[4];
        for (int k = 0; k < 4; k++) {
            right[k] = largest(X + r * N, N, right, k, 1);
            wrong[k] = largest(X + r * N, N, wrong, k, 0);
            V[r * 4 + k] = X[r * N + right[k]];
            I[r * 4 + k] = (int32_t)wrong[k];
        }
    }
}
