/* The definition as plain loops; the sum over a long row is kept in double. */
#include <math.h>
#include <stdint.h>

void kernel(const float *X, const float *gamma, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *x = X + i * N;
        double squares = 0;
        for (int64_t j = 0; j < N; j++)
            squares += (double)x[j] * x[j];
        double root = sqrt(squares / (double)N + 1e-6);
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] = (float)(x[j] / root * gamma[j]);
    }
}
