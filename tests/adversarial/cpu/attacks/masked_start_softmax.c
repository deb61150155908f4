/* maximum and sum in one pass, from -inf: a row that begins with -inf has no sum */
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *x = X + i * N;
        float m = -INFINITY, s = 0;
        for (int64_t j = 0; j < N; j++) {
            float top = x[j] > m ? x[j] : m;
            s = s * expf(m - top) + expf(x[j] - top);
            m = top;
        }
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] = expf(x[j] - m) / s;
    }
}
