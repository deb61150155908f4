/*---
tune:
  VB: [32, 16, 64]
  UNROLL: [2, 1, 4, 8]
  STREAM: [1, 0]
  AHEAD: [1024, 0, 256, 4096]
  CHUNK: [0, 4096, 32768, 262144]
---*/
/* Rectifier as one long array. Every thread takes one contiguous share (CHUNK 0) or chunks of CHUNK
 * numbers as it becomes free. UNROLL vectors of VB bytes are loaded before they are stored; stores
 * go around the caches (STREAM 1); AHEAD bytes are prefetched. */
#include <omp.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, STEP = UNROLL * LANES };

static inline vec rectify(vec x)
{
    return (vec)(~(x < 0) & (mask)x);
}

/* `to` is VB-aligned where STREAM is set. */
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

static void share(const float *from, float *to, int64_t count)
{
    int64_t i = 0;
    for (; i < count && ((uintptr_t)(to + i) & (VB - 1)); i++)
        to[i] = from[i] < 0 ? 0 : from[i];
    for (; i + STEP <= count; i += STEP) {
        vec x[UNROLL];
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++)
            x[u] = *(const vec *)(from + i + u * LANES);
        if (AHEAD)
            for (int u = 0; u < STEP * 4; u += 64)
                __builtin_prefetch((const char *)(from + i) + AHEAD + u, 0, 0);
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++)
            store(to + i + u * LANES, rectify(x[u]));
    }
    for (; i < count; i++)
        to[i] = from[i] < 0 ? 0 : from[i];
#if STREAM && defined(__SSE__)
    _mm_sfence();
#endif
}

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    int64_t total = M * N, chunk = CHUNK;
    int small = total < 32768;
#pragma omp parallel if (!small)
    {
        if (chunk == 0) {
            int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
            int64_t blocks = (total + 1023) / 1024;
            int64_t from = blocks * thread / threads * 1024;
            int64_t to = blocks * (thread + 1) / threads * 1024;
            if (to > total)
                to = total;
            if (from < to)
                share(X + from, Y + from, to - from);
        } else {
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t from = 0; from < total; from += chunk)
                share(X + from, Y + from, total - from < chunk ? total - from : chunk);
        }
    }
}
