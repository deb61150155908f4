/*---
tune:
  RB: [16, 8, 4]
  TM: [64, 32, 128]
  TN: [128, 64, 256]
  PAD: [16, 0]
  SUPER: [512, 0]
  STREAM: [1, 0]
  AHEAD: [1, 0]
  where: TM*TN <= 32768
---*/
/* Transposition through a buffer: a tile of TM rows by TN columns is read into a small array (its
 * rows PAD numbers longer than the tile, so that its columns do not all fall into one set of the
 * cache), turned round on the way in blocks of RB x RB in registers; each line of the array then
 * leaves as one run of TM numbers. Memory thus sees only runs: TN numbers in, TM numbers out. Tiles
 * are walked inside squares of SUPER (0: the whole share), whose pages the translation buffers can
 * hold. STREAM writes around the caches where B's rows are aligned; AHEAD prefetches the next tile
 * while this one leaves. Threads share A by rows. */
#include <omp.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { VB = RB * 4 };

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef float pair __attribute__((vector_size(32), aligned(4), may_alias));
typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

/* In every group of four lanes: the low, then the high halves of two vectors' numbers alternate. */
#if RB == 16
#define LOW_1  0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define HIGH_1 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define LOW_2  0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#elif RB == 8
#define LOW_1  0, 8, 1, 9, 4, 12, 5, 13
#define HIGH_1 2, 10, 3, 11, 6, 14, 7, 15
#define LOW_2  0, 1, 8, 9, 4, 5, 12, 13
#define HIGH_2 2, 3, 10, 11, 6, 7, 14, 15
#else
#define LOW_1  0, 4, 1, 5
#define HIGH_1 2, 6, 3, 7
#define LOW_2  0, 1, 4, 5
#define HIGH_2 2, 3, 6, 7
#endif

enum { LINE = TM + PAD };

static _Thread_local float buffer[TN * LINE] __attribute__((aligned(64)));

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Four numbers from each of rows 0, 4, 8, ... below RB, side by side. */
static inline vec load_fours(const float *a, int64_t lda)
{
    quad r0 = *(const quad *)a;
#if RB == 4
    (void)lda;
    return r0;
#else
    pair low = __builtin_shufflevector(r0, *(const quad *)(a + 4 * lda), 0, 1, 2, 3, 4, 5, 6, 7);
#if RB == 8
    return low;
#else
    quad r8 = *(const quad *)(a + 8 * lda);
    pair high = __builtin_shufflevector(r8, *(const quad *)(a + 12 * lda), 0, 1, 2, 3, 4, 5, 6, 7);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
#endif
}

/* Four columns at a time: what is left to do after the loads are 4 x 4 transpositions, which stay
 * inside groups of four lanes. */
static inline void block(const float *a, int64_t lda, float *b)
{
#pragma GCC unroll 4
    for (int j = 0; j < RB; j += 4) {
        vec x0 = load_fours(a + j, lda), x1 = load_fours(a + lda + j, lda);
        vec x2 = load_fours(a + 2 * lda + j, lda), x3 = load_fours(a + 3 * lda + j, lda);
        vec y0 = __builtin_shufflevector(x0, x1, LOW_1);
        vec y1 = __builtin_shufflevector(x0, x1, HIGH_1);
        vec y2 = __builtin_shufflevector(x2, x3, LOW_1);
        vec y3 = __builtin_shufflevector(x2, x3, HIGH_1);
        *(vec *)(b + j * LINE) = __builtin_shufflevector(y0, y2, LOW_2);
        *(vec *)(b + (j + 1) * LINE) = __builtin_shufflevector(y0, y2, HIGH_2);
        *(vec *)(b + (j + 2) * LINE) = __builtin_shufflevector(y1, y3, LOW_2);
        *(vec *)(b + (j + 3) * LINE) = __builtin_shufflevector(y1, y3, HIGH_2);
    }
}

static void gather(const float *a, int64_t lda, int64_t rows, int64_t columns)
{
    int64_t whole_rows = rows / RB * RB, whole_columns = columns / RB * RB;
    for (int64_t i = 0; i < whole_rows; i += RB)
        for (int64_t j = 0; j < whole_columns; j += RB)
            block(a + i * lda + j, lda, buffer + j * LINE + i);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; j++)
            buffer[j * LINE + i] = a[i * lda + j];
}

/* One run of B. */
static void leave(const float *from, float *to, int64_t count, int stream)
{
    int64_t i = 0;
#if STREAM && defined(__AVX512F__)
    for (; stream && i + 16 <= count; i += 16)
        _mm512_stream_ps(to + i, _mm512_loadu_ps(from + i));
#elif STREAM && defined(__AVX__)
    for (; stream && i + 8 <= count; i += 8)
        _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
#endif
    (void)stream;
    for (; i < count; i++)
        to[i] = from[i];
}

static void fetch(const float *next, int64_t lda, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < TN; j += 16)
            __builtin_prefetch(next + i * lda + j, 0, 2);
}

/* `below` counts the rows under the tile, which a prefetch may touch. */
static void tile(const float *a, int64_t lda, float *b, int64_t ldb, int64_t rows, int64_t columns,
                 int64_t below, int stream)
{
    int64_t done = 0;
    gather(a, lda, rows, columns);
    for (int64_t j = 0; j < columns; j++) {
        if (AHEAD) {
            int64_t until = min64(TM, below) * (j + 1) / columns;
            fetch(a + (TM + done) * lda, lda, until - done);
            done = until;
        }
        leave(buffer + j * LINE, b + j * ldb, rows, stream);
    }
}

/* Tiles down one strip of columns after the other, inside [i0, i1) x [j0, j1). */
static void square(const float *A, float *B, int64_t M, int64_t N, int64_t i0, int64_t i1,
                   int64_t j0, int64_t j1)
{
    for (int64_t j = j0; j < j1; j += TN)
        for (int64_t i = i0; i < i1; i += TM)
            tile(A + i * N + j, N, B + j * M + i, M, min64(TM, i1 - i), min64(TN, j1 - j),
                 i1 - i > TM ? i1 - i - TM : 0, M % 16 == 0);
}

void kernel(const float *A, float *B, int64_t M, int64_t N)
{
    int small = M * N < 16384;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t bands = (M + TM - 1) / TM;
        int64_t from = min64(bands * thread / threads * TM, M);
        int64_t to = min64(bands * (thread + 1) / threads * TM, M);
        int64_t height = SUPER ? SUPER : M, width = SUPER ? SUPER : N;
        for (int64_t i = from; i < to; i += height)
            for (int64_t j = 0; j < N; j += width)
                square(A, B, M, N, i, min64(i + height, to), j, min64(j + width, N));
#if STREAM && defined(__SSE__)
        _mm_sfence();
#endif
    }
}
