/*---
tune:
  VB: [32, 16, 64]
  UNROLL: [2, 1, 4]
  SHIFTED: [0, 1]
  STREAM: [1, 0]
  AHEAD: [1, 0, 2]
  CHUNK: [0, 4, 64]
---*/
/* Layer normalization row by row, the row staying in the first-level cache: mean; squares of the
 * deviations; result. SHIFTED takes both statistics in one pass, from numbers shifted by the mean
 * of the row's beginning, so that no digits cancel. STREAM writes around the caches; the next row
 * is prefetched meanwhile (AHEAD 1 into the first level, 2 into the second). Threads take
 * contiguous shares (CHUNK 0) or CHUNK rows as they become free. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, STEP = UNROLL * LANES, BEGINNING = 64 };

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

static float beginning(const float *x, int64_t n)
{
    int64_t count = n / LANES * LANES;
    vec sum = (vec){0};
    if (count == 0)
        return x[0];
    if (count > BEGINNING)
        count = BEGINNING;
    for (int64_t j = 0; j < count; j += LANES)
        sum += load(x + j);
    float result = 0;
    for (int l = 0; l < LANES; l++)
        result += sum[l];
    return result / (float)count;
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

struct columns {
    const float *gamma, *beta;
};

static void normalize(const float *x, float *y, int64_t n, float mean, float factor,
                      struct columns c, const float *next)
{
    int64_t j = 0;
    for (; STREAM && j < n && ((uintptr_t)(y + j) & (VB - 1)); j++)
        y[j] = (x[j] - mean) * factor * c.gamma[j] + c.beta[j];
    for (; j + STEP <= n; j += STEP) {
        if (AHEAD)
            for (int u = 0; u < STEP; u += 16)
                __builtin_prefetch(next + j + u, 0, AHEAD == 1 ? 3 : 2);
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++) {
            int64_t at = j + u * LANES;
            vec scaled = (load(x + at) - mean) * factor;
            store(y + at, scaled * load(c.gamma + at) + load(c.beta + at));
        }
    }
    for (; j < n; j++)
        y[j] = (x[j] - mean) * factor * c.gamma[j] + c.beta[j];
}

static void rows(const float *X, float *Y, struct columns c, int64_t from, int64_t to, int64_t M,
                 int64_t N)
{
    for (int64_t i = from; i < to; i++) {
        const float *x = X + i * N;
        float shift = SHIFTED ? beginning(x, N) : mean_of(x, N), sum, squares;
        moments(x, N, shift, &sum, &squares);
        /* Unshifted, `sum` is what rounding left of zero: taking it off too costs nothing. */
        float off = sum / (float)N;
        float variance = squares / (float)N - off * off;
        float factor = 1.0f / sqrtf((variance > 0 ? variance : 0) + 1e-5f);
        normalize(x, Y + i * N, N, shift + off, factor, c, i + 1 < M ? x + N : x);
    }
#if STREAM && defined(__SSE__)
    _mm_sfence();
#endif
}

void kernel(const float *X, const float *gamma, const float *beta, float *Y, int64_t M, int64_t N)
{
    struct columns c = {gamma, beta};
    int small = M * N < 16384;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        if (CHUNK == 0) {
            rows(X, Y, c, M * thread / threads, M * (thread + 1) / threads, M, N);
        } else {
            int64_t chunk = CHUNK ? CHUNK : 1;
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t i = 0; i < M; i += chunk)
                rows(X, Y, c, i, i + chunk < M ? i + chunk : M, M, N);
        }
    }
}
