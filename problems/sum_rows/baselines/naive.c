/* The definition as plain loops; the sum over a long row is kept in double. */
#include <stdint.h>

void kernel(const float *X, float *y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        double sum = 0;
        for (int64_t j = 0; j < N; j++)
            sum += X[i * N + j];
        y[i] = (float)sum;
    }
}
