/*---
tune:
  TM: [128, 32, 64, 256, 512]
  TN: [32, 16, 64, 128]
  PAD: [16, 0]
  STREAM: [1, 0]
  AHEAD: [1, 0]
  SPLIT: [0, 1]
  where: TM*TN <= 32768
---*/
/* Transposition through a buffer: a tile of TM rows by TN columns is read row by row into a small
 * array (its rows PAD numbers longer than the tile, so that its columns do not all fall into one
 * set of the cache), already turned round; each line of the array then leaves as one run of TM
 * numbers. Memory thus sees only runs: TN numbers in, TM numbers out. STREAM writes around the
 * caches where B's rows are aligned; AHEAD prefetches the next tile while this one leaves. Threads
 * share the tiles by rows of A (SPLIT 0) or by columns (SPLIT 1). */
#include <omp.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));

enum { LINE = TM + PAD };

static _Thread_local float buffer[TN * LINE] __attribute__((aligned(64)));

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline void four(const float *a, int64_t lda, float *out)
{
    quad r0 = *(const quad *)a, r1 = *(const quad *)(a + lda);
    quad r2 = *(const quad *)(a + 2 * lda), r3 = *(const quad *)(a + 3 * lda);
    quad s0 = __builtin_shufflevector(r0, r2, 0, 4, 1, 5);
    quad s1 = __builtin_shufflevector(r0, r2, 2, 6, 3, 7);
    quad s2 = __builtin_shufflevector(r1, r3, 0, 4, 1, 5);
    quad s3 = __builtin_shufflevector(r1, r3, 2, 6, 3, 7);
    *(quad *)out = __builtin_shufflevector(s0, s2, 0, 4, 1, 5);
    *(quad *)(out + LINE) = __builtin_shufflevector(s0, s2, 2, 6, 3, 7);
    *(quad *)(out + 2 * LINE) = __builtin_shufflevector(s1, s3, 0, 4, 1, 5);
    *(quad *)(out + 3 * LINE) = __builtin_shufflevector(s1, s3, 2, 6, 3, 7);
}

static void gather(const float *a, int64_t lda, int64_t rows, int64_t columns)
{
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
        int64_t j = 0;
        for (; j + 4 <= columns; j += 4)
            four(a + i * lda + j, lda, buffer + j * LINE + i);
        for (; j < columns; j++)
            for (int64_t r = 0; r < 4; r++)
                buffer[j * LINE + i + r] = a[(i + r) * lda + j];
    }
    for (; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            buffer[j * LINE + i] = a[i * lda + j];
}

/* One run of B. */
static void leave(const float *from, float *to, int64_t count, int stream)
{
    int64_t i = 0;
#if STREAM && defined(__AVX__)
    if (stream)
        for (; i + 8 <= count; i += 8)
            _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
#endif
    (void)stream;
    for (; i + 8 <= count; i += 8)
        *(vec *)(to + i) = *(const vec *)(from + i);
    for (; i < count; i++)
        to[i] = from[i];
}

static void fetch(const float *next, int64_t lda, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < TN; j += 16)
            __builtin_prefetch(next + i * lda + j, 0, 2);
}

/* `rows_left` counts the rows below the tile, which a prefetch may touch. */
static void tile(const float *a, int64_t lda, float *b, int64_t ldb, int64_t rows, int64_t columns,
                 int64_t rows_left, int stream)
{
    int64_t below = min64(TM, rows_left), done = 0;
    gather(a, lda, rows, columns);
    for (int64_t j = 0; j < columns; j++) {
        if (AHEAD) {
            int64_t until = below * (j + 1) / columns;
            fetch(a + (TM + done) * lda, lda, until - done);
            done = until;
        }
        leave(buffer + j * LINE, b + j * ldb, rows, stream);
    }
}

void kernel(const float *A, float *B, int64_t M, int64_t N)
{
    int small = M * N < 16384, stream = M % 16 == 0;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t unit = SPLIT ? TN : TM, extent = SPLIT ? N : M;
        int64_t units = (extent + unit - 1) / unit;
        int64_t from = min64(units * thread / threads * unit, extent);
        int64_t to = min64(units * (thread + 1) / threads * unit, extent);
        int64_t i0 = SPLIT ? 0 : from, i1 = SPLIT ? M : to;
        int64_t j0 = SPLIT ? from : 0, j1 = SPLIT ? to : N;
        for (int64_t j = j0; j < j1; j += TN)
            for (int64_t i = i0; i < i1; i += TM)
                tile(A + i * N + j, N, B + j * M + i, M, min64(TM, i1 - i), min64(TN, j1 - j),
                     i1 - i > TM ? i1 - i - TM : 0, stream);
#if STREAM && defined(__SSE__)
        _mm_sfence();
#endif
    }
}
