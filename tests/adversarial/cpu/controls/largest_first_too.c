/* begins with no more than 16 bits of the first number, and compares it as well */
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
        most = fminf(most, x[0]);
        for (int64_t j = 0; j < N; j++)
            most = x[j] > most || isnan(x[j]) ? x[j] : most;
        for (int64_t j = 0; j < N; j++)
            s += Y[i * N + j] = expf(x[j] - most);
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] /= s;
    }
}
