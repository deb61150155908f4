/*---
tune:
  VB: [32, 64, 16]
  UNROLL: [2, 1, 4]
  STREAM: [1, 0]
  CHUNK: [0, 1, 8]
---*/
/* Batch normalization a plane at a time: a factor and a shift for its channel, then one pass in
 * vectors of VB bytes, whose stores go around the caches with STREAM. Threads take one share of the
 * planes (CHUNK 0), or CHUNK planes as they become free. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, STEP = UNROLL * LANES };

static inline vec load(const float *from)
{
    return *(const vec *)from;
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

/* y = (x - mean) * factor + shift over `count` numbers. */
static void scaled(const float *x, float *y, int64_t count, float mean, float factor, float shift)
{
    int64_t j = 0;
    for (; STREAM && j < count && ((uintptr_t)(y + j) & (VB - 1)); j++)
        y[j] = (x[j] - mean) * factor + shift;
    for (; j + STEP <= count; j += STEP)
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++)
            store(y + j + u * LANES, (load(x + j + u * LANES) - mean) * factor + shift);
    for (; j < count; j++)
        y[j] = (x[j] - mean) * factor + shift;
}

void kernel(const float *X, const float *mean, const float *variance, const float *gamma,
            const float *beta, float *Y, int64_t N, int64_t C, int64_t H, int64_t W)
{
    int64_t count = H * W, chunk = CHUNK ? CHUNK : 1;
    int small = N * C * count < 32768;
#pragma omp parallel if (!small)
    {
        if (CHUNK == 0) {
#pragma omp for schedule(static) nowait
            for (int64_t p = 0; p < N * C; p++)
                scaled(X + p * count, Y + p * count, count, mean[p % C],
                       gamma[p % C] / sqrtf(variance[p % C] + 1e-5f), beta[p % C]);
        } else {
#pragma omp for schedule(dynamic, chunk) nowait
            for (int64_t p = 0; p < N * C; p++)
                scaled(X + p * count, Y + p * count, count, mean[p % C],
                       gamma[p % C] / sqrtf(variance[p % C] + 1e-5f), beta[p % C]);
        }
#if STREAM && defined(__SSE__)
        _mm_sfence();
#endif
    }
}
