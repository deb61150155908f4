/* tests/unit/eval/sums: float32 sums of products in the orders that honest kernels use, and what
 * lower precisions make of a number. For the tests of eval/check. */
#pragma once

#include <math.h>
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

static inline float sum_fused(const float *a, const float *b, size_t count, size_t stride)
{
    float sum = 0.0f;
    for (size_t i = 0; i < count; i++)
        sum = fmaf(a[i], b[i * stride], sum);
    return sum;
}

static inline float sum_compensated(const float *a, const float *b, size_t count, size_t stride)
{
    volatile float sum = 0.0f, lost = 0.0f;
    for (size_t i = 0; i < count; i++) {
        volatile float term = a[i] * b[i * stride] - lost, next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    return sum;
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

static inline float cut_to_bits(float number, unsigned bits)
{
    uint32_t word;
    memcpy(&word, &number, sizeof word);
    word &= ~(UINT32_MAX >> (9 + bits));
    memcpy(&number, &word, sizeof number);
    return number;
}

/* The same of halves that are cut off, not rounded. */
static inline float sum_tf32x3_cut(const float *a, const float *b, size_t count, size_t stride)
{
    float small = 0.0f, large = 0.0f;
    for (size_t i = 0; i < count; i++) {
        float x = a[i], y = b[i * stride];
        float high_x = cut_to_bits(x, 10), high_y = cut_to_bits(y, 10);
        small += high_x * cut_to_bits(y - high_y, 10);
        small += cut_to_bits(x - high_x, 10) * high_y;
        large += high_x * high_y;
    }
    return large + small;
}

/* Three products of tf32 halves, as matrix units are made to give float32's accuracy. */
static inline float sum_tf32x3(const float *a, const float *b, size_t count, size_t stride)
{
    float small = 0.0f, large = 0.0f;
    for (size_t i = 0; i < count; i++) {
        float x = a[i], y = b[i * stride];
        float high_x = round_to_bits(x, 10), high_y = round_to_bits(y, 10);
        small += high_x * round_to_bits(y - high_y, 10);
        small += round_to_bits(x - high_x, 10) * high_y;
        large += high_x * high_y;
    }
    return large + small;
}
