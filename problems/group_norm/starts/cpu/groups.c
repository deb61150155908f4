/*---
tune:
  VB: [32, 64, 16]
  UNROLL: [4, 2, 1]
  STREAM: [1, 0]
  CHUNK: [0, 1, 8]
---*/
/* Group normalization a group at a time, which stays in the second-level cache: its mean; squares of
 * what is off it, and what rounding left of the mean; then a factor and a shift for each channel.
 * Threads take one share of the groups (CHUNK 0), or CHUNK groups as they become free. */
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

static inline float total(const vec sums[UNROLL])
{
    vec sum = sums[0];
    for (int u = 1; u < UNROLL; u++)
        sum += sums[u];
    float result = 0;
    for (int l = 0; l < LANES; l++)
        result += sum[l];
    return result;
}

static float mean_of(const float *x, int64_t n)
{
    vec sums[UNROLL];
    for (int u = 0; u < UNROLL; u++)
        sums[u] = (vec){0};
    int64_t j = 0;
    for (; j + STEP <= n; j += STEP)
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++)
            sums[u] += load(x + j + u * LANES);
    float sum = total(sums);
    for (; j < n; j++)
        sum += x[j];
    return sum / (float)n;
}

/* Sum and sum of squares of x - shift. */
static void moments(const float *x, int64_t n, float shift, float *sum, float *squares)
{
    vec first[UNROLL], second[UNROLL];
    for (int u = 0; u < UNROLL; u++)
        first[u] = second[u] = (vec){0};
    int64_t j = 0;
    for (; j + STEP <= n; j += STEP)
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++) {
            vec d = load(x + j + u * LANES) - shift;
            first[u] += d;
            second[u] += d * d;
        }
    *sum = total(first);
    *squares = total(second);
    for (; j < n; j++) {
        float d = x[j] - shift;
        *sum += d;
        *squares += d * d;
    }
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

static void group(const float *x, const float *gamma, const float *beta, float *y, int64_t plane,
                  int64_t CG)
{
    int64_t count = CG * plane;
    float shift = mean_of(x, count), sum, squares;
    moments(x, count, shift, &sum, &squares);
    float off = sum / (float)count, variance = squares / (float)count - off * off;
    float factor = 1.0f / sqrtf((variance > 0 ? variance : 0) + 1e-5f);
    for (int64_t c = 0; c < CG; c++)
        scaled(x + c * plane, y + c * plane, plane, shift + off, factor * gamma[c], beta[c]);
}

void kernel(const float *X, const float *gamma, const float *beta, float *Y, int64_t N, int64_t C,
            int64_t H, int64_t W, int64_t G, int64_t CG)
{
    int64_t count = CG * H * W, chunk = CHUNK ? CHUNK : 1;
    int small = N * C * H * W < 16384;
#pragma omp parallel if (!small)
    {
        if (CHUNK == 0) {
#pragma omp for schedule(static) nowait
            for (int64_t i = 0; i < N * G; i++)
                group(X + i * count, gamma + i % G * CG, beta + i % G * CG, Y + i * count, H * W,
                      CG);
        } else {
#pragma omp for schedule(dynamic, chunk) nowait
            for (int64_t i = 0; i < N * G; i++)
                group(X + i * count, gamma + i % G * CG, beta + i % G * CG, Y + i * count, H * W,
                      CG);
        }
#if STREAM && defined(__SSE__)
        _mm_sfence();
#endif
    }
}
