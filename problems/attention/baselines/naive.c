/* The definition as plain loops, one query at a time. A query's scores are computed anew in each of
 * the three passes over the keys, so that no memory for them is needed. */
#include <math.h>
#include <stdint.h>

static double score(const float *q, const float *k, int64_t D)
{
    double sum = 0;
    for (int64_t d = 0; d < D; d++)
        sum += (double)q[d] * k[d];
    return sum / sqrt((double)D);
}

void kernel(const float *Q, const float *K, const float *V, float *O, int64_t H, int64_t L,
            int64_t D)
{
    for (int64_t row = 0; row < H * L; row++) {
        const float *q = Q + row * D, *k = K + row / L * L * D, *v = V + row / L * L * D;
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < L; j++)
            most = fmax(most, score(q, k + j * D, D));
        for (int64_t d = 0; d < D; d++)
            O[row * D + d] = 0;
        for (int64_t j = 0; j < L; j++)
            sum += exp(score(q, k + j * D, D) - most);
        for (int64_t j = 0; j < L; j++) {
            float weight = (float)(exp(score(q, k + j * D, D) - most) / sum);
            for (int64_t d = 0; d < D; d++)
                O[row * D + d] += weight * v[j * D + d];
        }
    }
}
