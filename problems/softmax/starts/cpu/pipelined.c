/*---
tune:
  WIDE: [1, 0]
  UNROLL: [2, 4]
  STREAM: [1, 0]
  AHEAD: [8192, 4096, 2048]
  SHARE: [0, 64]
---*/
/* Softmax with the three passes of three neighbouring rows in one loop: while row i's exponentials
 * are computed, row i + 1 arrives from memory and gives its maximum, and row i - 1 is divided and
 * leaves (around the caches with STREAM). Reading, computing and writing thus go on all the time,
 * where pass after pass would leave two of the three idle. What is AHEAD bytes further on is
 * prefetched: the hardware's own prefetcher starts anew with each page. Threads take one contiguous
 * share each (SHARE 0) or SHARE rows as they become free, which evens out a core that somebody else
 * uses. */
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

enum { LANES = VB / 4, STEP = UNROLL * LANES, BUFFERED = 32768 };

#define LEAST (-3.402823466e38f)

/* The exponentials of the row in work; a longer row's wait in the output itself. */
static _Thread_local float buffer[BUFFERED] __attribute__((aligned(64)));

struct row {
    const float *x;
    float *y;
    float most, factor;
};

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

static float highest(vec x)
{
    float result = x[0];
    for (int l = 1; l < LANES; l++)
        result = x[l] > result ? x[l] : result;
    return result;
}

static float total(vec x)
{
    float result = 0;
    for (int l = 0; l < LANES; l++)
        result += x[l];
    return result;
}

static void first(struct row *row, int64_t n)
{
    vec most = (vec){0} + LEAST;
    for (int64_t j = 0; j < n; j += LANES)
        most =
            larger(j + LANES <= n ? load(row->x + j) : load_some(row->x + j, n - j, LEAST), most);
    row->most = highest(most);
}

/* Row `now`: buffer = exp(x - most), and its factor; row `past` (or NULL): y = buffer * factor; row
 * `next`: its maximum. Every number of the buffer is read for `past` before `now` overwrites it. */
static inline void three(struct row *past, struct row *now, struct row *next, int64_t n)
{
    vec most = (vec){0} + LEAST, sum[UNROLL];
    float peak = now->most, factor = past ? past->factor : 0;
    int64_t j = 0;
    for (int u = 0; u < UNROLL; u++)
        sum[u] = (vec){0};
    for (; j + STEP <= n; j += STEP) {
        for (int u = 0; u < STEP * 4; u += 64)
            __builtin_prefetch((const char *)(next->x + j) + AHEAD + u, 0, 3);
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++) {
            int64_t at = j + u * LANES;
            most = larger(load(next->x + at), most);
            vec e = exponential(load(now->x + at) - peak);
            if (past)
                store(past->y + at, load(buffer + at) * factor);
            sum[u] += e;
            *(vec *)(buffer + at) = e;
        }
    }
    float rest = 0;
    for (; j < n; j += LANES) {
        int64_t count = n - j < LANES ? n - j : LANES;
        most = larger(load_some(next->x + j, count, LEAST), most);
        vec e = exponential(load_some(now->x + j, count, peak) - peak);
        for (int l = 0; l < count; l++) {
            if (past)
                past->y[j + l] = buffer[j + l] * factor;
            rest += buffer[j + l] = e[l];
        }
    }
    for (int u = 1; u < UNROLL; u++)
        sum[0] += sum[u];
    now->factor = 1.0f / (total(sum[0]) + rest);
    next->most = highest(most);
}

static void last(struct row *row, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        row->y[j] = buffer[j] * row->factor;
}

/* A row that is too long for the buffer. */
static void alone(struct row *row, int64_t n)
{
    vec sum = (vec){0};
    float rest = 0;
    first(row, n);
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        vec e = exponential(load(row->x + j) - row->most);
        sum += e;
        *(vec *)(row->y + j) = e;
    }
    if (j < n) {
        vec e = exponential(load_some(row->x + j, n - j, row->most) - row->most);
        for (int l = 0; l < n - j; l++)
            rest += row->y[j + l] = e[l];
    }
    float factor = 1.0f / (total(sum) + rest);
    for (j = 0; j < n; j++)
        row->y[j] *= factor;
}

static void rows(const float *X, float *Y, int64_t from, int64_t to, int64_t N)
{
    struct row past = {0}, now = {.x = X + from * N, .y = Y + from * N};
    /* Stores around the caches must be aligned: so must every row. */
    if (N > BUFFERED || (STREAM && N % LANES != 0)) {
        for (int64_t i = from; i < to; i++) {
            struct row row = {.x = X + i * N, .y = Y + i * N};
            alone(&row, N);
        }
        return;
    }
    if (from >= to)
        return;
    first(&now, N);
    for (int64_t i = from; i < to; i++) {
        int64_t after = i + 1 < to ? i + 1 : i;
        struct row next = {.x = X + after * N, .y = Y + after * N};
        if (i == from)
            three(NULL, &now, &next, N);
        else
            three(&past, &now, &next, N);
        past = now;
        now = next;
    }
    last(&past, N);
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
        if (SHARE == 0) {
            rows(X, Y, M * thread / threads, M * (thread + 1) / threads, N);
        } else {
            int64_t share = SHARE ? SHARE : 1;
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t i = 0; i < M; i += share)
                rows(X, Y, i, i + share < M ? i + share : M, N);
        }
    }
}
