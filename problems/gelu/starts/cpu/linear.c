/*---
tune:
  VB: [32, 64, 16]
  UNROLL: [2, 1, 4]
  STREAM: [1, 0]
  CHUNK: [0, 32768, 262144]
---*/
/* Gaussian error linear unit over one long array, UNROLL vectors of VB bytes at once.
 * Stores go around the caches (STREAM 1). Every thread takes one contiguous share (CHUNK 0) or
 * chunks of CHUNK numbers as it becomes free. */
#include <omp.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(VB), aligned(4), may_alias));
typedef uint32_t bits __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, STEP = UNROLL * LANES };

static inline vec choose(mask which, vec yes, vec no)
{
    return (vec)((which & (mask)yes) | (~which & (mask)no));
}

/* exp(-|x|): -|x| = n ln2 + r, a polynomial in r, n added to the exponent; 0 from 87 on, NaN of NaN. */
static inline vec decay(vec x)
{
    const vec round = (vec){0} + 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    vec size = choose(x < 0, -x, x), y = choose(size >= 87.0f, (vec){0}, -size);
    vec shifted = y * 1.44269504f + round, n = shifted - round;
    vec r = y - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vec p = r * 1.3814598788e-03f + 8.3687165752e-03f;
    p = p * r + 4.1668388993e-02f;
    p = p * r + 1.6666521132e-01f;
    p = p * r + 4.9999994040e-01f;
    p = p * (r * r) + r + 1.0f;
    return choose(size >= 87.0f, (vec){0}, (vec)((bits)p + ((bits)shifted << 23)));
}

static inline vec apply(vec x)
{
    /* erfc(z) = exp(-z * z) * t * p(t), t = 1 / (1 + z / 2): to 4e-7 of itself, so that nothing is
     * lost where x is negative and the result small. */
    vec z = choose(x < 0, -x, x) * 0.70710678f, t = 1.0f / (1.0f + 0.5f * z);
    vec p = t * -0.059384305f + 0.286114424f;
    p = p * t + -0.490388542f;
    p = p * t + 0.281714976f;
    p = p * t + -0.0291372798f;
    p = p * t + 0.203748301f;
    p = p * t + 0.242836058f;
    p = p * t + 0.282411993f;
    p = p * t + 0.282084346f;
    vec half = choose(z >= 10.0f, (vec){0}, 0.5f * x); /* of infinity times zero is no number */
    vec tail = half * decay(0.5f * x * x) * t * p;
    return choose(x < 0, tail, x - tail);
}

static inline void store(float *to, vec x)
{
#if STREAM && VB == 64 && defined(__AVX512F__)
    _mm512_stream_ps(to, (__m512)x);
#elif STREAM && VB == 32 && defined(__AVX__)
    _mm256_stream_ps(to, (__m256)x);
#elif STREAM && VB == 16 && defined(__SSE__)
    _mm_stream_ps(to, (__m128)x);
#else
    *(vec *)to = x;
#endif
}

/* `to` is VB-aligned: tensors are, and every share begins at a multiple of 1024 numbers. */
static void share(const float *from, float *to, int64_t count)
{
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP)
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++)
            store(to + i + u * LANES, apply(*(const vec *)(from + i + u * LANES)));
    for (; i < count; i += LANES) {
        size_t bytes = (size_t)(count - i < LANES ? count - i : LANES) * sizeof(float);
        vec x = {0};
        memcpy(&x, from + i, bytes);
        x = apply(x);
        memcpy(to + i, &x, bytes);
    }
#if STREAM && defined(__SSE__)
    _mm_sfence();
#endif
}

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    int64_t total = M * N, chunk = CHUNK;
    int small = total < 32768;
#pragma omp parallel if (!small)
    {
        if (chunk == 0) {
            int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
            int64_t blocks = (total + 1023) / 1024;
            int64_t from = blocks * thread / threads * 1024;
            int64_t to = blocks * (thread + 1) / threads * 1024;
            if (to > total)
                to = total;
            if (from < to)
                share(X + from, Y + from, to - from);
        } else {
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t from = 0; from < total; from += chunk)
                share(X + from, Y + from, total - from < chunk ? total - from : chunk);
        }
    }
}
