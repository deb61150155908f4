/* what is taken off before squares are summed is the mean without a row's rest: short rows far from zero cancel */
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *x = X + i * N;
        float lanes[8] = {0}, shift = 0, s = 0, q = 0;
        int64_t j = 0;
        for (; j + 8 <= N; j += 8)
            for (int l = 0; l < 8; l++)
                lanes[l] += x[j + l];
        for (int l = 0; l < 8; l++)
            shift += lanes[l];
        shift /= (float)N;
        for (j = 0; j < N; j++) {
            s += x[j] - shift;
            q += (x[j] - shift) * (x[j] - shift);
        }
        float off = s / (float)N, variance = fmaxf(q / (float)N - off * off, 0);
        float scale = 1 / sqrtf(variance + 1e-5f);
        for (j = 0; j < N; j++)
            Y[i * N + j] = (x[j] - shift - off) * scale;
    }
}
