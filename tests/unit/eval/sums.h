/* tests/unit/eval/sums: float32 sums of products in the orders that honest kernels use, and what
 * lower precisions make of a number. For the tests of eval/check. */
#ifndef TESTS_SUMS_H
#define TESTS_SUMS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef float sum_order(const float *a, const float *b, size_t count, size_t stride);

/* Sum of a[i] * b[i * stride]. */
static inline float sum_sequential(const float *a, const float *b, size_t count, size_t stride)
{
    float sum = 0.0f;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i * stride];
    return sum;
}

static inline float sum_backwards(const float *a, const float *b, size_t count, size_t stride)
{
    float sum = 0.0f;
    for (size_t i = count; i-- > 0;)
        sum += a[i] * b[i * stride];
    return sum;
}

static inline float sum_blocked(const float *a, const float *b, size_t count, size_t stride)
{
    float total = 0.0f;
    for (size_t first = 0; first < count; first += 64) {
        size_t length = count - first < 64 ? count - first : 64;
        total += sum_sequential(a + first, b + first * stride, length, stride);
    }
    return total;
}

static inline float sum_pairwise(const float *a, const float *b, size_t count, size_t stride)
{
    if (count <= 8)
        return sum_sequential(a, b, count, stride);
    size_t half = count / 2;
    return sum_pairwise(a, b, half, stride) +
           sum_pairwise(a + half, b + half * stride, count - half, stride);
}

/* What -ffast-math makes of the loop on a machine with `lanes` floats in a vector. */
static inline float sum_lanes(const float *a, const float *b, size_t count, size_t stride,
                              size_t lanes)
{
    float parts[64] = {0.0f};
    for (size_t i = 0; i < count; i++)
        parts[i % lanes] += a[i] * b[i * stride];
    for (size_t width = lanes / 2; width > 0; width /= 2)
        for (size_t i = 0; i < width; i++)
            parts[i] += parts[i + width];
    return parts[0];
}

static inline float sum_4_lanes(const float *a, const float *b, size_t count, size_t stride)
{
    return sum_lanes(a, b, count, stride, 4);
}

static inline float sum_64_lanes(const float *a, const float *b, size_t count, size_t stride)
{
    return sum_lanes(a, b, count, stride, 64);
}

static inline double sum_exact(const float *a, const float *b, size_t count, size_t stride)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += (double)a[i] * (double)b[i * stride];
    return sum;
}

/* To nearest even with `bits` of mantissa kept: 10 is tf32, 7 is bfloat16. */
static inline float round_to_bits(float number, unsigned bits)
{
    uint32_t word, shift = 23 - bits;
    memcpy(&word, &number, sizeof word);
    word += (1u << (shift - 1)) - 1u + (word >> shift & 1u);
    word &= ~((1u << shift) - 1u);
    memcpy(&number, &word, sizeof number);
    return number;
}

#endif
