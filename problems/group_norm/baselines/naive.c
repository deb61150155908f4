/* The definition as plain loops; sums over large groups are kept in double. */
#include <math.h>
#include <stdint.h>

void kernel(const float *X, const float *gamma, const float *beta, float *Y, int64_t N, int64_t C,
            int64_t H, int64_t W, int64_t G, int64_t CG)
{
    int64_t count = CG * H * W;
    for (int64_t i = 0; i < N * G; i++) {
        const float *x = X + i * count;
        double sum = 0, squares = 0;
        for (int64_t j = 0; j < count; j++)
            sum += x[j];
        double mean = sum / (double)count;
        for (int64_t j = 0; j < count; j++)
            squares += (x[j] - mean) * (x[j] - mean);
        double deviation = sqrt(squares / (double)count + 1e-5);
        for (int64_t j = 0; j < count; j++) {
            int64_t c = i % G * CG + j / (H * W);
            Y[i * count + j] = (float)((x[j] - mean) / deviation * gamma[c] + beta[c]);
        }
    }
    (void)C;
}
