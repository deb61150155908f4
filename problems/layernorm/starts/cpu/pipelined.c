/*---
tune:
  VB: [32, 16, 64]
  UNROLL: [2, 1, 4]
  STREAM: [1, 0]
  AHEAD: [8192, 0, 2048, 16384]
  SHARE: [0, 16, 64]
---*/
/* Layer normalization in one loop: while row i is normalized and leaves (around the caches with
 * STREAM), row i + 1 arrives from memory and gives its sums, so that reading and writing never wait
 * for each other. The sums are of numbers shifted by the mean of the row's beginning, so that one
 * pass loses no digits. AHEAD bytes are prefetched besides. Threads take one contiguous share each
 * (SHARE 0) or SHARE rows as they become free. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, STEP = UNROLL * LANES, BEGINNING = 64 };

struct columns {
    const float *gamma, *beta;
};

struct statistics {
    float mean, factor;
};

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

/* Statistics of the row at `next`; and, where y is not NULL, y from x and its own statistics. */
static inline struct statistics step(const float *next, const float *x, float *y,
                                     struct statistics own, struct columns c, int64_t n,
                                     int aligned)
{
    float shift = beginning(next, n);
    vec first[UNROLL], second[UNROLL];
    for (int u = 0; u < UNROLL; u++)
        first[u] = second[u] = (vec){0};
    int64_t j = 0;
    for (; j + STEP <= n; j += STEP) {
        if (AHEAD)
            for (int u = 0; u < STEP * 4; u += 64)
                __builtin_prefetch((const char *)(next + j) + AHEAD + u, 0, 3);
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++) {
            int64_t at = j + u * LANES;
            vec d = load(next + at) - shift;
            first[u] += d;
            second[u] += d * d;
            if (y) {
                vec scaled = (load(x + at) - own.mean) * own.factor;
                store(y + at, scaled * load(c.gamma + at) + load(c.beta + at), aligned);
            }
        }
    }
    float sum = total(first), squares = total(second);
    for (; j < n; j++) {
        float d = next[j] - shift;
        sum += d;
        squares += d * d;
        if (y)
            y[j] = (x[j] - own.mean) * own.factor * c.gamma[j] + c.beta[j];
    }
    float off = sum / (float)n, variance = squares / (float)n - off * off;
    return (struct statistics){shift + off, 1.0f / sqrtf((variance > 0 ? variance : 0) + 1e-5f)};
}

static void rows(const float *X, float *Y, struct columns c, int64_t from, int64_t to, int64_t N)
{
    struct statistics own = {0};
    int aligned = N % LANES == 0;
    if (from >= to)
        return;
    own = step(X + from * N, NULL, NULL, own, c, N, aligned);
    for (int64_t i = from; i < to; i++) {
        const float *x = X + i * N;
        own = step(i + 1 < to ? x + N : x, x, Y + i * N, own, c, N, aligned);
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
        if (SHARE == 0) {
            rows(X, Y, c, M * thread / threads, M * (thread + 1) / threads, N);
        } else {
            int64_t share = SHARE ? SHARE : 1;
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t i = 0; i < M; i += share)
                rows(X, Y, c, i, i + share < M ? i + share : M, N);
        }
    }
}
