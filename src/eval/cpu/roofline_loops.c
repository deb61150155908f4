/* The inner loops, once for each width of vectors: what cannot be faster is what a ceiling is. */
#include "eval/cpu/roofline.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ACCUMULATORS = 12 }; /* latency 4 times two units, and some to spare; fits 16 registers */

/* NOLINTBEGIN(bugprone-macro-parentheses): types and statements have none */
/* WRITE: through the caches or past them. */
#define COPY(NAME, TARGET, VECTOR, LOAD, WRITE, FENCE)                                             \
    TARGET static void NAME(void *to, const void *from, size_t bytes)                              \
    {                                                                                              \
        float *out = to;                                                                           \
        const float *in = from;                                                                    \
        enum { W = sizeof(VECTOR) / sizeof(float) };                                               \
        for (size_t i = 0; i < bytes / sizeof(float); i += (size_t)4 * W) {                        \
            VECTOR a = LOAD(in + i), b = LOAD(in + i + W);                                         \
            VECTOR c = LOAD(in + i + 2 * W), d = LOAD(in + i + 3 * W);                             \
            WRITE(out + i, a);                                                                     \
            WRITE(out + i + W, b);                                                                 \
            WRITE(out + i + 2 * W, c);                                                             \
            WRITE(out + i + 3 * W, d);                                                             \
        }                                                                                          \
        FENCE;                                                                                     \
    }

/* The same loops for one vector type; MULTIPLY_ADD and STREAM are that instruction set's own. */
#define LOOPS(SUFFIX, TARGET, VECTOR, LOAD, STORE, STREAM, SET, ADD, MULTIPLY_ADD, FENCE,          \
              REGISTER)                                                                            \
    COPY(copy_##SUFFIX, TARGET, VECTOR, LOAD, STORE, (void)0)                                      \
    COPY(stream_##SUFFIX, TARGET, VECTOR, LOAD, STREAM, FENCE)                                     \
    TARGET static float read_##SUFFIX(const void *from, size_t bytes)                              \
    {                                                                                              \
        const float *in = from;                                                                    \
        enum { W = sizeof(VECTOR) / sizeof(float) };                                               \
        VECTOR a = SET(0), b = a, c = a, d = a, e = a, f = a, g = a, h = a;                        \
        float lanes[W], total = 0;                                                                 \
        for (size_t i = 0; i < bytes / sizeof(float); i += (size_t)8 * W) {                        \
            a = ADD(a, LOAD(in + i));                                                              \
            b = ADD(b, LOAD(in + i + W));                                                          \
            c = ADD(c, LOAD(in + i + 2 * W));                                                      \
            d = ADD(d, LOAD(in + i + 3 * W));                                                      \
            e = ADD(e, LOAD(in + i + 4 * W));                                                      \
            f = ADD(f, LOAD(in + i + 5 * W));                                                      \
            g = ADD(g, LOAD(in + i + 6 * W));                                                      \
            h = ADD(h, LOAD(in + i + 7 * W));                                                      \
        }                                                                                          \
        a = ADD(ADD(ADD(a, b), ADD(c, d)), ADD(ADD(e, f), ADD(g, h)));                             \
        memcpy(lanes, &a, sizeof lanes);                                                           \
        for (int j = 0; j < W; j++)                                                                \
            total += lanes[j];                                                                     \
        return total;                                                                              \
    }                                                                                              \
    TARGET static double fma_##SUFFIX(long rounds)                                                 \
    {                                                                                              \
        enum { W = sizeof(VECTOR) / sizeof(float) };                                               \
        volatile float factor = 0.999f, term = 0.001f; /* unknown to the compiler */               \
        VECTOR x = SET(factor), y = SET(term);                                                     \
        VECTOR a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x, k = x, l = x, m = x, n = x; \
        for (long i = 0; i < rounds; i++) {                                                        \
            a = MULTIPLY_ADD(a, x, y);                                                             \
            b = MULTIPLY_ADD(b, x, y);                                                             \
            c = MULTIPLY_ADD(c, x, y);                                                             \
            d = MULTIPLY_ADD(d, x, y);                                                             \
            e = MULTIPLY_ADD(e, x, y);                                                             \
            f = MULTIPLY_ADD(f, x, y);                                                             \
            g = MULTIPLY_ADD(g, x, y);                                                             \
            h = MULTIPLY_ADD(h, x, y);                                                             \
            k = MULTIPLY_ADD(k, x, y);                                                             \
            l = MULTIPLY_ADD(l, x, y);                                                             \
            m = MULTIPLY_ADD(m, x, y);                                                             \
            n = MULTIPLY_ADD(n, x, y);                                                             \
            __asm__ volatile(""                                                                    \
                             : REGISTER(a), REGISTER(b), REGISTER(c), REGISTER(d), REGISTER(e),    \
                               REGISTER(f));                                                       \
            __asm__ volatile(""                                                                    \
                             : REGISTER(g), REGISTER(h), REGISTER(k), REGISTER(l), REGISTER(m),    \
                               REGISTER(n));                                                       \
        }                                                                                          \
        return 2.0 * W * ACCUMULATORS * (double)rounds;                                            \
    }                                                                                              \
    static const struct roofline_loops loops_##SUFFIX = {#SUFFIX, copy_##SUFFIX, stream_##SUFFIX,  \
                                                         read_##SUFFIX, fma_##SUFFIX};

/* NOLINTEND(bugprone-macro-parentheses) */

#if defined(__x86_64__)

#define REGISTER_X(v)               "+x"(v)
#define REGISTER_V(v)               "+v"(v)
#define PLAIN_MULTIPLY_ADD(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
LOOPS(sse2, , __m128, _mm_load_ps, _mm_store_ps, _mm_stream_ps, _mm_set1_ps, _mm_add_ps,
      PLAIN_MULTIPLY_ADD, _mm_sfence(), REGISTER_X)
LOOPS(avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_load_ps, _mm256_store_ps,
      _mm256_stream_ps, _mm256_set1_ps, _mm256_add_ps, _mm256_fmadd_ps, _mm_sfence(), REGISTER_X)
LOOPS(avx512, __attribute__((target("avx512f"))), __m512, _mm512_load_ps, _mm512_store_ps,
      _mm512_stream_ps, _mm512_set1_ps, _mm512_add_ps, _mm512_fmadd_ps, _mm_sfence(), REGISTER_V)

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
#define VECTOR_SET(number)      ((vector){(number), (number), (number), (number)})
#define REGISTER_W(v)           "+w"(v)
#define VECTOR_ADD(a, b)        ((a) + (b))
#define VECTOR_FMA(a, b, c)     ((a) * (b) + (c))
LOOPS(generic, , vector, VECTOR_LOAD, VECTOR_STORE, VECTOR_STORE, VECTOR_SET, VECTOR_ADD,
      VECTOR_FMA, (void)0, REGISTER_W)

const struct roofline_loops *roofline_loops(void)
{
    return &loops_generic;
}

#endif
