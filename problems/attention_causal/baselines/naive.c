/* The definition as plain loops, one query at a time. A query's scores are computed anew in each
 * pass over the keys, so that no memory for them is needed. WIDTH numbers of the result are summed
 * at a time, in float32, and rounded once. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { WIDTH = 128 };

static float number(uint16_t bits)
{
    uint32_t wide = (uint32_t)(bits & 0x7fff) << 13;
    float x;
    memcpy(&x, &wide, 4);
    x = (bits & 0x7c00) == 0x7c00 ? ((bits & 0x3ff) != 0 ? NAN : INFINITY) : x * 0x1p112f;
    return bits >> 15 ? -x : x;
}

static uint16_t rounded(float x)
{
    float size = fabsf(x), small = size + 0.5f; /* whose last bit is float16's smallest number */
    uint32_t bits, small_bits;
    memcpy(&bits, &size, 4);
    memcpy(&small_bits, &small, 4);
    uint32_t half = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
    if (size < 0x1p-14f)
        half = small_bits - 0x3f000000;
    if (size >= 65520.0f)
        half = 0x7c00;
    if (x != x)
        half = 0x7e00;
    return (uint16_t)(half | (signbit(x) ? 0x8000u : 0u));
}

static double score(const uint16_t *q, const uint16_t *k, int64_t D)
{
    double sum = 0;
    for (int64_t d = 0; d < D; d++)
        sum += (double)number(q[d]) * number(k[d]);
    return sum / sqrt((double)D);
}

void kernel(const uint16_t *Q, const uint16_t *K, const uint16_t *V, uint16_t *O, int64_t H,
            int64_t L, int64_t D)
{
    for (int64_t row = 0; row < H * L; row++) {
        const uint16_t *q = Q + row * D, *k = K + row / L * L * D, *v = V + row / L * L * D;
        const int64_t keys = row % L + 1;
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < keys; j++)
            most = fmax(most, score(q, k + j * D, D));
        for (int64_t j = 0; j < keys; j++)
            sum += exp(score(q, k + j * D, D) - most);
        for (int64_t d0 = 0; d0 < D; d0 += WIDTH) {
            float part[WIDTH] = {0};
            int64_t width = D - d0 < WIDTH ? D - d0 : WIDTH;
            for (int64_t j = 0; j < keys; j++) {
                float weight = (float)(exp(score(q, k + j * D, D) - most) / sum);
                for (int64_t d = 0; d < width; d++)
                    part[d] += weight * number(v[j * D + d0 + d]);
            }
            for (int64_t d = 0; d < width; d++)
                O[row * D + d0 + d] = rounded(part[d]);
        }
    }
}
