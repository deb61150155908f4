/* The inner loops, once for each width of vectors: what cannot be faster is what a ceiling is. */
#include "eval/cpu/roofline.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ACCUMULATORS = 12 }; /* latency 4 times two units, and some to spare; fits 16 registers */

/* The same loops for one vector type; MULTIPLY_ADD and STREAM are that instruction set's own. */
#define LOOPS(SUFFIX, TARGET, VECTOR, LOAD, STORE, STREAM, ZERO, ONE, ADD, MULTIPLY_ADD, FENCE)    \
    TARGET static void copy_##SUFFIX(void *to, const void *from, size_t bytes)                     \
    {                                                                                              \
        float *out = to;                                                                           \
        const float *in = from;                                                                    \
        enum { W = sizeof(VECTOR) / sizeof(float) };                                               \
        for (size_t i = 0; i < bytes / sizeof(float); i += (size_t)4 * W) {                        \
            VECTOR a = LOAD(in + i), b = LOAD(in + i + W);                                         \
            VECTOR c = LOAD(in + i + 2 * W), d = LOAD(in + i + 3 * W);                             \
            STORE(out + i, a);                                                                     \
            STORE(out + i + W, b);                                                                 \
            STORE(out + i + 2 * W, c);                                                             \
            STORE(out + i + 3 * W, d);                                                             \
        }                                                                                          \
    }                                                                                              \
    TARGET static void stream_##SUFFIX(void *to, const void *from, size_t bytes)                   \
    {                                                                                              \
        float *out = to;                                                                           \
        const float *in = from;                                                                    \
        enum { W = sizeof(VECTOR) / sizeof(float) };                                               \
        for (size_t i = 0; i < bytes / sizeof(float); i += (size_t)4 * W) {                        \
            VECTOR a = LOAD(in + i), b = LOAD(in + i + W);                                         \
            VECTOR c = LOAD(in + i + 2 * W), d = LOAD(in + i + 3 * W);                             \
            STREAM(out + i, a);                                                                    \
            STREAM(out + i + W, b);                                                                \
            STREAM(out + i + 2 * W, c);                                                            \
            STREAM(out + i + 3 * W, d);                                                            \
        }                                                                                          \
        FENCE;                                                                                     \
    }                                                                                              \
    TARGET static float read_##SUFFIX(const void *from, size_t bytes)                              \
    {                                                                                              \
        const float *in = from;                                                                    \
        enum { W = sizeof(VECTOR) / sizeof(float) };                                               \
        VECTOR sum[8];                                                                             \
        float lanes[W], total = 0;                                                                 \
        for (int j = 0; j < 8; j++)                                                                \
            sum[j] = ZERO;                                                                         \
        for (size_t i = 0; i < bytes / sizeof(float); i += (size_t)8 * W)                          \
            for (int j = 0; j < 8; j++)                                                            \
                sum[j] = ADD(sum[j], LOAD(in + i + (size_t)j * W));                                \
        for (int j = 1; j < 8; j++)                                                                \
            sum[0] = ADD(sum[0], sum[j]);                                                          \
        memcpy(lanes, &sum[0], sizeof lanes);                                                      \
        for (int j = 0; j < W; j++)                                                                \
            total += lanes[j];                                                                     \
        return total;                                                                              \
    }                                                                                              \
    TARGET static double fma_##SUFFIX(long rounds)                                                 \
    {                                                                                              \
        enum { W = sizeof(VECTOR) / sizeof(float) };                                               \
        VECTOR sum[ACCUMULATORS], x = ONE, y = ZERO;                                               \
        volatile float kept = 0;                                                                   \
        for (int j = 0; j < ACCUMULATORS; j++)                                                     \
            sum[j] = ZERO;                                                                         \
        for (long i = 0; i < rounds; i++) {                                                        \
            for (int j = 0; j < ACCUMULATORS; j++)                                                 \
                sum[j] = MULTIPLY_ADD(sum[j], x, y);                                               \
            __asm__ volatile("" : "+m"(*(char *)&kept)); /* each round is done */                  \
        }                                                                                          \
        for (int j = 1; j < ACCUMULATORS; j++)                                                     \
            sum[0] = ADD(sum[0], sum[j]);                                                          \
        float lanes[W];                                                                            \
        memcpy(lanes, &sum[0], sizeof lanes);                                                      \
        kept = lanes[0];                                                                           \
        (void)kept;                                                                                \
        return 2.0 * W * ACCUMULATORS * (double)rounds;                                            \
    }                                                                                              \
    static const struct roofline_loops loops_##SUFFIX = {#SUFFIX, copy_##SUFFIX, stream_##SUFFIX,  \
                                                         read_##SUFFIX, fma_##SUFFIX};

#if defined(__x86_64__)

#define PLAIN_MULTIPLY_ADD(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
LOOPS(sse2, , __m128, _mm_load_ps, _mm_store_ps, _mm_stream_ps, _mm_setzero_ps(), _mm_set1_ps(1),
      _mm_add_ps, PLAIN_MULTIPLY_ADD, _mm_sfence())
LOOPS(avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_load_ps, _mm256_store_ps,
      _mm256_stream_ps, _mm256_setzero_ps(), _mm256_set1_ps(1), _mm256_add_ps, _mm256_fmadd_ps,
      _mm_sfence())
LOOPS(avx512, __attribute__((target("avx512f"))), __m512, _mm512_load_ps, _mm512_store_ps,
      _mm512_stream_ps, _mm512_setzero_ps(), _mm512_set1_ps(1), _mm512_add_ps, _mm512_fmadd_ps,
      _mm_sfence())

const struct roofline_loops *roofline_loops(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return &loops_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &loops_avx2;
    return &loops_sse2;
}

#else

typedef float vector __attribute__((vector_size(16)));
#define VECTOR_LOAD(at)         (*(const vector *)(at))
#define VECTOR_STORE(at, value) (*(vector *)(at) = (value))
#define VECTOR_ADD(a, b)        ((a) + (b))
#define VECTOR_FMA(a, b, c)     ((a) * (b) + (c))
LOOPS(generic, , vector, VECTOR_LOAD, VECTOR_STORE, VECTOR_STORE, ((vector){0}),
      ((vector){1, 1, 1, 1}), VECTOR_ADD, VECTOR_FMA, (void)0)

const struct roofline_loops *roofline_loops(void)
{
    return &loops_generic;
}

#endif
