/*---
tune:
  VB: [32, 16, 64]
  UNROLL: [2, 1, 4]
  STREAM: [1, 0]
  AHEAD: [1, 0, 2]
  CHUNK: [0, 4, 64]
---*/
/* Root-mean-square normalization row by row, the row staying in the first-level cache: squares,
 * then result. STREAM writes around the caches; the next row is prefetched meanwhile (AHEAD 1 into
 * the first level, 2 into the second). Threads take contiguous shares (CHUNK 0) or CHUNK rows as
 * they become free. */
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

static float squares_of(const float *x, int64_t n)
{
    vec sums[UNROLL];
    for (int u = 0; u < UNROLL; u++)
        sums[u] = (vec){0};
    int64_t j = 0;
    for (; j + STEP <= n; j += STEP)
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++) {
            vec x_j = load(x + j + u * LANES);
            sums[u] += x_j * x_j;
        }
    float sum = total(sums);
    for (; j < n; j++)
        sum += x[j] * x[j];
    return sum;
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

static void normalize(const float *x, float *y, int64_t n, float factor, const float *gamma,
                      const float *next)
{
    int64_t j = 0;
    for (; STREAM && j < n && ((uintptr_t)(y + j) & (VB - 1)); j++)
        y[j] = x[j] * factor * gamma[j];
    for (; j + STEP <= n; j += STEP) {
        if (AHEAD)
            for (int u = 0; u < STEP; u += 16)
                __builtin_prefetch(next + j + u, 0, AHEAD == 1 ? 3 : 2);
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++) {
            int64_t at = j + u * LANES;
            store(y + at, load(x + at) * factor * load(gamma + at));
        }
    }
    for (; j < n; j++)
        y[j] = x[j] * factor * gamma[j];
}

static void rows(const float *X, const float *gamma, float *Y, int64_t from, int64_t to, int64_t M,
                 int64_t N)
{
    for (int64_t i = from; i < to; i++) {
        const float *x = X + i * N;
        float factor = 1.0f / sqrtf(squares_of(x, N) / (float)N + 1e-6f);
        normalize(x, Y + i * N, N, factor, gamma, i + 1 < M ? x + N : x);
    }
#if STREAM && defined(__SSE__)
    _mm_sfence();
#endif
}

void kernel(const float *X, const float *gamma, float *Y, int64_t M, int64_t N)
{
    int small = M * N < 16384;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        if (CHUNK == 0) {
            rows(X, gamma, Y, M * thread / threads, M * (thread + 1) / threads, M, N);
        } else {
            int64_t chunk = CHUNK ? CHUNK : 1;
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t i = 0; i < M; i += chunk)
                rows(X, gamma, Y, i, i + chunk < M ? i + chunk : M, M, N);
        }
    }
}
