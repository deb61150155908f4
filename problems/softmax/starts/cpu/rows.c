/*---
tune:
  WIDE: [1, 0]
  UNROLL: [2, 4]
  STREAM: [1, 0]
  NEAR: [3, 2]
  CHUNK: [0, 64]
---*/
/* Softmax in three passes over a row that stays in the first-level cache: maximum; exponentials,
 * into a buffer, and their sum; division, from where the results leave (around the caches with
 * STREAM: a row of Y that the exponentials went to first would have to be fetched). While a row's
 * exponentials are computed the next row is prefetched, NEAR being the prefetch's locality; without
 * that memory would rest for two passes of three. Threads take contiguous shares (CHUNK 0) or CHUNK
 * rows as they become free, which evens out a core that somebody else uses. */
#include <omp.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Bytes of a vector: the machine's widest, or the next narrower. */
#if defined(__AVX512F__) && WIDE
#define VB 64
#elif defined(__AVX__) && (WIDE || defined(__AVX512F__))
#define VB 32
#else
#define VB 16
#endif

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(VB), aligned(4), may_alias));
typedef uint32_t bits __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, STEP = UNROLL * LANES, BUFFERED = 16384 };

#define LEAST (-3.402823466e38f)

static _Thread_local float buffer[BUFFERED] __attribute__((aligned(64)));

static inline vec load(const float *from)
{
    return *(const vec *)from;
}

/* `count` numbers, the other lanes hold `other`. */
static inline vec load_some(const float *from, int64_t count, float other)
{
    float lanes[LANES] __attribute__((aligned(64)));
    for (int l = 0; l < LANES; l++)
        lanes[l] = l < count ? from[l] : other;
    return load(lanes);
}

static inline vec larger(vec a, vec b)
{
#if VB == 64 && defined(__AVX512F__)
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif VB == 32 && defined(__AVX__)
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#else
    mask more = a > b;
    return (vec)((more & (mask)a) | (~more & (mask)b));
#endif
}

/* exp(x) for x <= 0: x = n ln2 + r, a polynomial in r, n added to the exponent. Below -87 the
 * result stays at exp(-87), which is nothing beside the row's largest, 1. */
static inline vec exponential(vec x)
{
    const vec round = (vec){0} + 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = larger((vec){0} - 87.0f, x); /* which keeps a NaN */
    vec shifted = x * 1.44269504f + round;
    vec n = shifted - round;
    vec r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vec p = r * 1.3814598788e-03f + 8.3687165752e-03f;
    p = p * r + 4.1668388993e-02f;
    p = p * r + 1.6666521132e-01f;
    p = p * r + 4.9999994040e-01f;
    p = p * (r * r) + r + 1.0f;
    return (vec)((bits)p + ((bits)shifted << 23));
}

static float most_of(const float *x, int64_t n)
{
    vec most[UNROLL];
    for (int u = 0; u < UNROLL; u++)
        most[u] = (vec){0} + LEAST;
    int64_t j = 0;
    for (; j + STEP <= n; j += STEP)
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++)
            most[u] = larger(load(x + j + u * LANES), most[u]);
    for (; j < n; j += LANES)
        most[0] = larger(j + LANES <= n ? load(x + j) : load_some(x + j, n - j, LEAST), most[0]);
    for (int u = 1; u < UNROLL; u++)
        most[0] = larger(most[u], most[0]);
    float result = LEAST;
    for (int l = 0; l < LANES; l++)
        result = most[0][l] > result ? most[0][l] : result;
    return result;
}

/* y = exp(x - most); returns the sum. */
static float exponentials(const float *x, float *y, int64_t n, float most, const float *next)
{
    vec sum[UNROLL];
    for (int u = 0; u < UNROLL; u++)
        sum[u] = (vec){0};
    int64_t j = 0;
    for (; j + STEP <= n; j += STEP) {
        for (int u = 0; u < STEP; u += 16)
            __builtin_prefetch(next + j + u, 0, NEAR);
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++) {
            vec e = exponential(load(x + j + u * LANES) - most);
            sum[u] += e;
            *(vec *)(y + j + u * LANES) = e;
        }
    }
    float total = 0;
    for (; j < n; j += LANES) {
        int64_t count = n - j < LANES ? n - j : LANES;
        vec e = exponential(load_some(x + j, count, most) - most);
        for (int l = 0; l < count; l++)
            total += y[j + l] = e[l];
    }
    for (int u = 1; u < UNROLL; u++)
        sum[0] += sum[u];
    for (int l = 0; l < LANES; l++)
        total += sum[0][l];
    return total;
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

static void scale(const float *from, float *to, int64_t n, float factor)
{
    int64_t j = 0;
    for (; STREAM && j < n && ((uintptr_t)(to + j) & (VB - 1)); j++)
        to[j] = from[j] * factor;
    for (; j + STEP <= n; j += STEP)
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++)
            store(to + j + u * LANES, load(from + j + u * LANES) * factor);
    for (; j < n; j++)
        to[j] = from[j] * factor;
}

static void rows(const float *X, float *Y, int64_t from, int64_t to, int64_t last, int64_t N)
{
    for (int64_t i = from; i < to; i++) {
        const float *x = X + i * N;
        float *y = Y + i * N, *kept = N <= BUFFERED ? buffer : y;
        float most = most_of(x, N);
        float sum = exponentials(x, kept, N, most, i < last ? x + N : x);
        scale(kept, y, N, 1.0f / sum);
    }
#if STREAM && defined(__SSE__)
    _mm_sfence();
#endif
}

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    int small = M * N < 16384;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        if (CHUNK == 0) {
            rows(X, Y, M * thread / threads, M * (thread + 1) / threads, M - 1, N);
        } else {
            int64_t chunk = CHUNK ? CHUNK : 1;
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t i = 0; i < M; i += chunk)
                rows(X, Y, i, i + chunk < M ? i + chunk : M, M - 1, N);
        }
    }
}
