/*---
tune:
  BURST: [1024, 256, 4096]
  STREAMS: [2, 1, 4, 8]
  GATHER: [0, 1]
  ACCUMULATORS: [4, 2, 8]
---*/
/* Row sums over several streams: a thread's share of the rows is cut into STREAMS stretches that
 * lie far apart and are read in turn, BURST numbers of one row each; with GATHER a burst is first
 * prefetched as a whole. Every burst is folded into one vector, which waits for the row's next one.
 */
#include <omp.h>
#include <stdint.h>

typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));

enum { LANES = 8, STEP = ACCUMULATORS * LANES };

static inline vec burst(const float *x, int64_t count, vec sum)
{
    vec part[ACCUMULATORS];
#pragma GCC unroll 8
    for (int a = 0; a < ACCUMULATORS; a++)
        part[a] = (vec){0};
    if (GATHER)
        for (int64_t j = 0; j < count; j += 16)
            __builtin_prefetch(x + j, 0, 3);
    int64_t j = 0;
    for (; j + STEP <= count; j += STEP)
#pragma GCC unroll 8
        for (int a = 0; a < ACCUMULATORS; a++)
            part[a] += *(const vec *)(x + j + a * LANES);
    for (; j < count; j++)
        sum[0] += x[j];
#pragma GCC unroll 8
    for (int a = 0; a < ACCUMULATORS; a++)
        sum += part[a];
    return sum;
}

static inline float total(vec sum)
{
    float result = 0;
    for (int l = 0; l < LANES; l++)
        result += sum[l];
    return result;
}

static void share(const float *X, float *y, int64_t from, int64_t to, int64_t N)
{
    int64_t stretch = (to - from) / STREAMS;
    for (int64_t i = from; i < from + stretch; i++) {
        vec sum[STREAMS];
        for (int s = 0; s < STREAMS; s++)
            sum[s] = (vec){0};
        for (int64_t j = 0; j < N; j += BURST)
            for (int s = 0; s < STREAMS; s++)
                sum[s] =
                    burst(X + (i + s * stretch) * N + j, N - j < BURST ? N - j : BURST, sum[s]);
        for (int s = 0; s < STREAMS; s++)
            y[i + s * stretch] = total(sum[s]);
    }
    for (int64_t i = from + STREAMS * stretch; i < to; i++) {
        vec sum = (vec){0};
        for (int64_t j = 0; j < N; j += BURST)
            sum = burst(X + i * N + j, N - j < BURST ? N - j : BURST, sum);
        y[i] = total(sum);
    }
}

void kernel(const float *X, float *y, int64_t M, int64_t N)
{
    int small = M * N < 32768;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        share(X, y, M * thread / threads, M * (thread + 1) / threads, N);
    }
}
