/* eval/data/numbers: how a number is drawn, bit by bit: integers, and sums and products of floats
 * of which none is fused. Any thread. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

/* --- words --- */

/* splitmix64's finalizer */
static inline uint64_t number_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Of a block's words; streams are independent of each other. */
static inline uint64_t number_key(uint64_t seed, uint64_t block, uint64_t stream)
{
    return number_mix(number_mix(seed ^ number_mix(stream)) + block);
}

/* Word i of a block: C. Wellons' `lowbias32` under the two halves of the key. */
static inline uint32_t number_word(uint32_t before, uint32_t within, uint32_t i)
{
    uint32_t x = (i * 0x9e3779b9u) ^ before;
    x ^= x >> 16;
    x *= 0x21f0aaadu;
    x ^= (x >> 15) ^ within;
    x *= 0x735a2d97u;
    return x ^ (x >> 15);
}

/* --- floats --- */

static inline uint32_t number_bits(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}
static inline float number_of_bits(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* By bits: gcc does not vectorize a loop that compares floats. */
static inline float number_magnitude(float x)
{
    return number_of_bits(number_bits(x) & 0x7fffffffu);
}

/* 1/sqrt(x) for a normal x > 0, to about 2e-7 of it: Newton's steps from the well-known guess. */
static inline float number_inverse_root(float x)
{
    float y = number_of_bits(0x5f375a86u - (number_bits(x) >> 1));
    y = y * (1.5f - 0.5f * x * y * y);
    y = y * (1.5f - 0.5f * x * y * y);
    return y * (1.5f - 0.5f * x * y * y);
}

/* -ln(x) for x in (0, 1], always positive. */
static inline float number_minus_log(float x)
{
    uint32_t bits = number_bits(x);
    float exponent = (float)((int32_t)(bits >> 23) - 127);
    float m = number_of_bits((bits & 0x007fffffu) | 0x3f800000u) - 1.0f;
    float p = -0.0064535442f;
    p = p * m + 0.0360884937f;
    p = p * m - 0.0953293897f;
    p = p * m + 0.1676540711f;
    p = p * m - 0.2407338084f;
    p = p * m + 0.3317990258f;
    p = p * m - 0.4998741238f;
    p = p * m + 0.9999964239f;
    return number_magnitude(exponent * 0.693147181f + p * m) + 1e-12f;
}

/* sin(2 pi turn) for a turn as a fraction of 2^32. */
static inline float number_sine(uint32_t turn)
{
    /* Fold into a quarter turn to either side of zero, where the polynomial holds. */
    int32_t from_quarter = (int32_t)(turn - 0x40000000u);
    float distance = number_magnitude((float)from_quarter * 0x1p-32f);
    float x = (0.25f - distance) * 6.28318531f;
    float square = x * x;
    return x * (1.0f + square * (-0.16666667f +
                                 square * (0.0083333310f +
                                           square * (-0.00019840874f + square * 2.7525562e-6f))));
}

static inline float number_positive_unit(uint32_t word) /* (0, 1] */
{
    return ((float)(int32_t)(word >> 8) + 1.0f) * 0x1p-24f;
}

static inline float number_signed_unit(uint32_t word) /* [-1, 1) */
{
    return (float)((int32_t)word >> 7) * 0x1p-24f;
}

/* Two normal numbers have a radius and a turn, a word each: Box and Muller's. */
static inline float number_radius(uint32_t word)
{
    float t = 2.0f * number_minus_log(number_positive_unit(word));
    return t * number_inverse_root(t);
}

/* The inverse of Student's distribution for 2 degrees, in closed form. */
static inline float number_heavy(uint32_t word)
{
    float a = number_signed_unit(word);
    return a * 1.41421356f * number_inverse_root(1.0000001f - a * a);
}

/* The number itself or, for nine words of ten, zero. */
static inline float number_sparse(float z, uint32_t word)
{
    return number_of_bits(number_bits(z) & (0u - (uint32_t)(word < 0xffffffffu / 10)));
}

/* --- in its place, in its type --- */

/* Numbers of float64 must not be numbers of float32 too, or else computing in float32 would look
 * exact: up to 2^-24 of each is taken off. */
static inline double number_wide(float z, uint32_t word)
{
    return (double)z * (1.0 - (double)word * 0x1p-56);
}
