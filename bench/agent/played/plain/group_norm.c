/*---
tune:
  VB: [64]
  UNROLL: [2]
  STREAM: [1]
  BATCH: [4]
---*/
/* group_norm, r1-c7: no champion: too noisy to say whether r1-c7 is faster than reference
 * Compile: gcc -std=gnu17 -O3 -march=native -fopenmp -shared -fPIC (and the flags of its `compile`
 * key, if it has one). Call: kernel(inputs..., outputs..., workspaces..., dims...),
 * pointers to row-major tensors, dims as int64_t, in the order of the problem's spec.
 * Evaluate: twagent eval group_norm THIS_FILE */
#include <stddef.h>
#include <stdint.h>
#ifndef VB
#define VB 64
#endif
#ifndef UNROLL
#define UNROLL 2
#endif
#ifndef STREAM
#define STREAM 1
#endif
#ifndef BATCH
#define BATCH 4
#endif

/* Group normalization: a thread takes the statistics of BATCH groups, then writes them all from the
 * second-level cache, so that reads and streaming stores come in longer runs. */
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

static inline float across(vec v)
{
#if VB == 64 && defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)v);
#else
    float part[LANES];
    *(vec *)part = v;
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++)
            part[l] += part[l + width];
    return part[0];
#endif
}

static inline float total(const vec sums[UNROLL])
{
    vec sum = sums[0];
    for (int u = 1; u < UNROLL; u++)
        sum += sums[u];
    return across(sum);
}

static inline void store(float *to, vec x)
{
#if STREAM && VB == 64 && defined(__AVX512F__)
    _mm512_stream_ps(to, (__m512)x);
#elif STREAM && VB == 32 && defined(__AVX__)
    _mm256_stream_ps(to, (__m256)x);
#else
    *(vec *)to = x;
#endif
}

static inline void fence(void)
{
#if STREAM && defined(__SSE__)
    _mm_sfence();
#endif
}

enum { STREAMS = 4 };

static float mean_of(const float *x, int64_t n)
{
    vec sums[STREAMS * UNROLL];
    for (int u = 0; u < STREAMS * UNROLL; u++)
        sums[u] = (vec){0};
    int64_t quarter = n / (STREAMS * STEP) * STEP;
    for (int64_t j = 0; j < quarter; j += STEP)
#pragma GCC unroll 4
        for (int s = 0; s < STREAMS; s++)
#pragma GCC unroll 4
            for (int u = 0; u < UNROLL; u++)
                sums[s * UNROLL + u] += load(x + s * quarter + j + u * LANES);
    for (int s = 1; s < STREAMS; s++)
        for (int u = 0; u < UNROLL; u++)
            sums[u] += sums[s * UNROLL + u];
    int64_t j = STREAMS * quarter;
    for (; j + LANES <= n; j += LANES)
        sums[0] += load(x + j);
    float sum = total(sums);
    for (; j < n; j++)
        sum += x[j];
    return sum / (float)n;
}

enum { PARTS = 4, WIDE = PARTS * LANES };

/* Sum and sum of squares of x - shift. */
static void moments(const float *x, int64_t n, float shift, float *sum, float *squares)
{
    vec first[PARTS], second[PARTS];
    for (int u = 0; u < PARTS; u++)
        first[u] = second[u] = (vec){0};
    int64_t j = 0;
    for (; j + WIDE <= n; j += WIDE)
#pragma GCC unroll 8
        for (int u = 0; u < PARTS; u++) {
            vec d = load(x + j + u * LANES) - shift;
            first[u] += d;
            second[u] += d * d;
        }
    *sum = across((first[0] + first[1]) + (first[2] + first[3]));
    *squares = across((second[0] + second[1]) + (second[2] + second[3]));
    for (; j < n; j++) {
        float d = x[j] - shift;
        *sum += d;
        *squares += d * d;
    }
}

/* y = (x - mean) * factor + shift over `count` numbers. */
static void scaled(const float *x, float *y, int64_t count, float mean, float factor, float shift)
{
    int64_t j = 0;
    for (; STREAM && j < count && ((uintptr_t)(y + j) & (VB - 1)); j++)
        y[j] = (x[j] - mean) * factor + shift;
    for (; j + STEP <= count; j += STEP)
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++)
            store(y + j + u * LANES, (load(x + j + u * LANES) - mean) * factor + shift);
    for (; j < count; j++)
        y[j] = (x[j] - mean) * factor + shift;
}

void kernel(const float *X, const float *gamma, const float *beta, float *Y, int64_t N, int64_t C,
            int64_t H, int64_t W, int64_t G, int64_t CG)
{
    int64_t plane = H * W, count = CG * plane, groups = N * G;
    int small = N * C * plane < 16384;
    int64_t most = 655360 / (4 * count), batch = most < 1 ? 1 : most < BATCH ? most : BATCH;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
        int64_t from = groups * me / threads, to = groups * (me + 1) / threads;
        float means[BATCH], factors[BATCH];
        for (int64_t i = from; i < to; i += batch) {
            int64_t n = to - i < batch ? to - i : batch;
            for (int64_t b = 0; b < n; b++) {
                const float *x = X + (i + b) * count;
                float shift = mean_of(x, count), sum, squares;
                moments(x, count, shift, &sum, &squares);
                float off = sum / (float)count, variance = squares / (float)count - off * off;
                factors[b] = 1.0f / sqrtf((variance > 0 ? variance : 0) + 1e-5f);
                means[b] = shift + off;
            }
            for (int64_t b = 0; b < n; b++)
                for (int64_t c = 0; c < CG; c++) {
                    int64_t channel = (i + b) % G * CG + c, at = ((i + b) * CG + c) * plane;
                    scaled(X + at, Y + at, plane, means[b], factors[b] * gamma[channel],
                           beta[channel]);
                }
        }
        fence();
    }
}
