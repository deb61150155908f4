/* The definition as plain loops; sums over long rows are kept in double. */
#include <math.h>
#include <stdint.h>

void kernel(const float *X, const float *gamma, const float *beta, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *x = X + i * N;
        double sum = 0, squares = 0;
        for (int64_t j = 0; j < N; j++)
            sum += x[j];
        double mean = sum / (double)N;
        for (int64_t j = 0; j < N; j++)
            squares += (x[j] - mean) * (x[j] - mean);
        double deviation = sqrt(squares / (double)N + 1e-5);
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] = (float)((x[j] - mean) / deviation * gamma[j] + beta[j]);
    }
}
