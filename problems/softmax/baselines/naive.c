/* The definition as plain loops. */
#include <math.h>
#include <stdint.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        const float *x = X + i * N;
        float *y = Y + i * N;
        float most = x[0];
        double sum = 0; /* a float would lose digits over long rows */
        for (int64_t j = 1; j < N; j++)
            most = x[j] > most ? x[j] : most;
        for (int64_t j = 0; j < N; j++) {
            y[j] = expf(x[j] - most);
            sum += y[j];
        }
        for (int64_t j = 0; j < N; j++)
            y[j] = (float)(y[j] / sum);
    }
}
