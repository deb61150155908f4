/*---
tune:
  RB: [16, 8, 4]
  TM: [64, 16, 256]
  TN: [64, 16, 256]
  DOWN: [0, 1]
  SPLIT: [0, 1]
  STREAM: [1, 0]
  AHEAD: [4, 0]
---*/
/* Transposition by blocks of RB x RB that are turned round in registers. Blocks are walked inside
 * tiles of TM rows by TN columns of A, along A's rows or down its columns (DOWN, which writes B in
 * sequence). STREAM writes around the caches where B's rows are aligned. AHEAD prefetches the lines
 * of the block that many steps on. Threads share A's rows (SPLIT 0) or columns (SPLIT 1). */
#include <omp.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { VB = RB * 4 };

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

#if RB == 16
#define LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif RB == 8
#define LOW  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define LOW  0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#endif

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One step of the shuffle network: the highest bit of the row number becomes the lowest bit of the
 * lane number and everything else moves up by one; log2(RB) steps exchange rows and lanes. */
static inline void weave(const vec in[RB], vec out[RB])
{
#pragma GCC unroll 16
    for (int r = 0; r < RB / 2; r++) {
        out[2 * r] = __builtin_shufflevector(in[r], in[r + RB / 2], LOW);
        out[2 * r + 1] = __builtin_shufflevector(in[r], in[r + RB / 2], HIGH);
    }
}

static inline void store(float *to, vec x, int stream)
{
#if STREAM && RB == 16 && defined(__AVX512F__)
    if (stream) {
        _mm512_stream_ps(to, (__m512)x);
        return;
    }
#elif STREAM && RB == 8 && defined(__AVX__)
    if (stream) {
        _mm256_stream_ps(to, (__m256)x);
        return;
    }
#elif STREAM && RB == 4 && defined(__SSE__)
    if (stream) {
        _mm_stream_ps(to, (__m128)x);
        return;
    }
#endif
    (void)stream;
    *(vec *)to = x;
}

static inline void block(const float *a, int64_t lda, float *b, int64_t ldb, int stream)
{
    vec x[RB], y[RB];
#pragma GCC unroll 16
    for (int r = 0; r < RB; r++)
        x[r] = *(const vec *)(a + r * lda);
    weave(x, y);
    weave(y, x);
#if RB >= 8
    weave(x, y);
#if RB == 16
    weave(y, x);
#else
#pragma GCC unroll 16
    for (int r = 0; r < RB; r++)
        x[r] = y[r];
#endif
#endif
#pragma GCC unroll 16
    for (int r = 0; r < RB; r++)
        store(b + r * ldb, x[r], stream);
}

static inline void ahead(const float *a, int64_t lda)
{
    for (int r = 0; r < RB; r++)
        __builtin_prefetch(a + r * lda, 0, 3);
}

static void edge(const float *a, int64_t lda, float *b, int64_t ldb, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            b[j * ldb + i] = a[i * lda + j];
}

static void tile(const float *a, int64_t lda, float *b, int64_t ldb, int64_t rows, int64_t columns,
                 int stream)
{
    int64_t whole_rows = rows / RB * RB, whole_columns = columns / RB * RB;
    if (DOWN) {
        for (int64_t j = 0; j < whole_columns; j += RB)
            for (int64_t i = 0; i < whole_rows; i += RB) {
                if (AHEAD && i + (AHEAD + 1) * RB <= rows)
                    ahead(a + (i + AHEAD * RB) * lda + j, lda);
                block(a + i * lda + j, lda, b + j * ldb + i, ldb, stream);
            }
    } else {
        for (int64_t i = 0; i < whole_rows; i += RB)
            for (int64_t j = 0; j < whole_columns; j += RB) {
                if (AHEAD)
                    ahead(a + i * lda + j + AHEAD * RB, lda);
                block(a + i * lda + j, lda, b + j * ldb + i, ldb, stream);
            }
    }
    edge(a + whole_columns, lda, b + whole_columns * ldb, ldb, whole_rows, columns - whole_columns);
    edge(a + whole_rows * lda, lda, b + whole_rows, ldb, rows - whole_rows, columns);
}

void kernel(const float *A, float *B, int64_t M, int64_t N)
{
    int small = M * N < 16384, stream = M % RB == 0;
    int64_t bands = SPLIT ? (N + TN - 1) / TN : (M + TM - 1) / TM;
#pragma omp parallel for schedule(static) if (!small)
    for (int64_t band = 0; band < bands; band++) {
        int64_t i0 = SPLIT ? 0 : band * TM, i1 = SPLIT ? M : min64(i0 + TM, M);
        int64_t j0 = SPLIT ? band * TN : 0, j1 = SPLIT ? min64(j0 + TN, N) : N;
        for (int64_t i = i0; i < i1; i += TM)
            for (int64_t j = j0; j < j1; j += TN)
                tile(A + i * N + j, N, B + j * M + i, M, min64(TM, i1 - i), min64(TN, j1 - j),
                     stream);
#if STREAM && defined(__SSE__)
        _mm_sfence();
#endif
    }
}
