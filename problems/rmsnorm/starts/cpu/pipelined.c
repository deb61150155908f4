/*---
tune:
  VB: [32, 16, 64]
  UNROLL: [2, 1, 4]
  STREAM: [1, 0]
  AHEAD: [8192, 0, 2048, 16384]
  SHARE: [0, 16, 64]
---*/
/* Root-mean-square normalization in one loop: while row i is scaled and leaves (around the caches
 * with STREAM), row i + 1 arrives from memory and gives its sum of squares, so that reading and
 * writing never wait for each other. AHEAD bytes are prefetched besides. Threads take one
 * contiguous share each (SHARE 0) or SHARE rows as they become free. */
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

static inline void store(float *to, vec x, int aligned)
{
#if STREAM && VB == 64 && defined(__AVX512F__)
    if (aligned) {
        _mm512_stream_ps(to, (__m512)x);
        return;
    }
#elif STREAM && VB == 32 && defined(__AVX__)
    if (aligned) {
        _mm256_stream_ps(to, (__m256)x);
        return;
    }
#elif STREAM && VB == 16 && defined(__SSE__)
    if (aligned) {
        _mm_stream_ps(to, (__m128)x);
        return;
    }
#endif
    (void)aligned;
    *(vec *)to = x;
}

/* The factor of the row at `next`; and, where y is not NULL, y from x and its own factor. */
static inline float step(const float *next, const float *x, float *y, float own, const float *gamma,
                         int64_t n, int aligned)
{
    vec sums[UNROLL];
    for (int u = 0; u < UNROLL; u++)
        sums[u] = (vec){0};
    int64_t j = 0;
    for (; j + STEP <= n; j += STEP) {
        if (AHEAD)
            for (int u = 0; u < STEP * 4; u += 64)
                __builtin_prefetch((const char *)(next + j) + AHEAD + u, 0, 3);
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++) {
            int64_t at = j + u * LANES;
            vec x_j = load(next + at);
            sums[u] += x_j * x_j;
            if (y)
                store(y + at, load(x + at) * own * load(gamma + at), aligned);
        }
    }
    float sum = total(sums);
    for (; j < n; j++) {
        sum += next[j] * next[j];
        if (y)
            y[j] = x[j] * own * gamma[j];
    }
    return 1.0f / sqrtf(sum / (float)n + 1e-6f);
}

static void rows(const float *X, const float *gamma, float *Y, int64_t from, int64_t to, int64_t N)
{
    int aligned = N % LANES == 0;
    if (from >= to)
        return;
    float own = step(X + from * N, NULL, NULL, 0, gamma, N, aligned);
    for (int64_t i = from; i < to; i++) {
        const float *x = X + i * N;
        own = step(i + 1 < to ? x + N : x, x, Y + i * N, own, gamma, N, aligned);
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
        if (SHARE == 0) {
            rows(X, gamma, Y, M * thread / threads, M * (thread + 1) / threads, N);
        } else {
            int64_t share = SHARE ? SHARE : 1;
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t i = 0; i < M; i += share)
                rows(X, gamma, Y, i, i + share < M ? i + share : M, N);
        }
    }
}
