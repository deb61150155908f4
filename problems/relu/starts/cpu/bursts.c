/*---
tune:
  BURST: [4096, 1024, 8192, 16384, 32768]
  STREAMS: [1, 2, 4]
  GATHER: [0, 1]
  STREAM: [1, 0]
  LEVEL: [3, 2]
  where: BURST*STREAMS <= 65536
---*/
/* Rectifier in bursts: BURST bytes are first pulled into the cache as a run of reads (GATHER), then
 * rectified and written as a run of writes, so that memory turns round between reading and writing
 * less often. A thread works on STREAMS separate stretches of its share in turn, which gives the
 * hardware that many sequences to prefetch. */
#include <omp.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(32), aligned(4), may_alias));

enum { LANES = 8, NUMBERS = BURST / 4 };

static inline void store(float *to, vec x)
{
#if STREAM && defined(__AVX__)
    _mm256_stream_ps(to, (__m256)x);
#else
    *(vec *)to = x;
#endif
}

static inline vec rectify(const float *from)
{
    vec x = *(const vec *)from;
    return (vec)(~(x < 0) & (mask)x);
}

/* `to` is 32-byte aligned: tensors are, and every share begins at a multiple of 16 numbers. */
static inline void burst(const float *from, float *to, int64_t count)
{
    if (GATHER)
        for (int64_t i = 0; i < count; i += 16)
            __builtin_prefetch(from + i, 0, LEVEL);
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        vec low = rectify(from + i), high = rectify(from + i + LANES);
        store(to + i, low);
        store(to + i + LANES, high);
    }
    for (; i < count; i++)
        to[i] = from[i] < 0 ? 0 : from[i];
}

static void share(const float *from, float *to, int64_t count)
{
    int64_t stretch = count / STREAMS / 16 * 16;
    int64_t last = count - (STREAMS - 1) * stretch; /* the last stretch takes what is left over */
    for (int64_t i = 0; i < last; i += NUMBERS) {
        for (int s = 0; s < STREAMS; s++) {
            int64_t length = s == STREAMS - 1 ? last : stretch;
            if (i < length)
                burst(from + s * stretch + i, to + s * stretch + i,
                      length - i < NUMBERS ? length - i : NUMBERS);
        }
    }
#if STREAM && defined(__SSE__)
    _mm_sfence();
#endif
}

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    int64_t total = M * N;
    int small = total < 32768;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t blocks = (total + 1023) / 1024;
        int64_t from = blocks * thread / threads * 1024;
        int64_t to = blocks * (thread + 1) / threads * 1024;
        if (to > total)
            to = total;
        if (from < to)
            share(X + from, Y + from, to - from);
    }
}
