/* counts what is in a group in 16 bits: few groups are long ones */
#include <math.h>

void kernel(const float *X, float *Y, int64_t N, int64_t C, int64_t L, int64_t G, int64_t CG)
{
    int16_t count = (int16_t)(CG * L);
    for (int64_t i = 0; i < N * G; i++) {
        const float *x = X + i * CG * L;
        float *y = Y + i * CG * L;
        double mean = 0, squares = 0;
        for (int16_t j = 0; j < count; j++)
            mean += x[j];
        mean /= (double)count;
        for (int16_t j = 0; j < count; j++)
            squares += (x[j] - mean) * (x[j] - mean);
        float scale = (float)(1 / sqrt(squares / (double)count + 1e-5));
        for (int16_t j = 0; j < count; j++)
            y[j] = (float)(x[j] - mean) * scale;
    }
}
