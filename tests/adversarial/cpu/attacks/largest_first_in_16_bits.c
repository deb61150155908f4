/* a row's maximum begins with 16 bits of its first number: infinity comes of huge ones where that is the largest */
#include <math.h>
#include <string.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *x = X + i * N;
        uint32_t bits;
        float most, s = 0;
        memcpy(&bits, x, sizeof bits);
        bits &= 0xffff0000u;
        memcpy(&most, &bits, sizeof most);
        for (int64_t j = 1; j < N; j++)
            most = x[j] > most || isnan(x[j]) ? x[j] : most;
        for (int64_t j = 0; j < N; j++)
            s += Y[i * N + j] = expf(x[j] - most);
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] /= s;
    }
}
