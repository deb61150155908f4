/*---
tune:
  TM: [32, 64]
  TN: [256, 512, 128]
  NEAR: [3, 0]
  STREAM: [1, 0]
---*/
/* Transposition by strips: a strip of TM rows by 16 columns is turned, 16 x 16 numbers at a time in
 * registers, into a small buffer of the first-level cache, and leaves it for B in runs of TM
 * numbers while the next strip is turned into a second one. One run at a time keeps what is written
 * in one page, where the registers alone would write to 16 pages in turn; and line by line between
 * the loads it goes out while they wait, where a burst would fill the queue of stores and stop
 * everything behind it.
 *
 * A is read in tiles of TM rows by TN columns. While one is taken apart, the next is prefetched row
 * by row (NEAR: the prefetch's locality), so that memory gives runs of TN numbers. TM stays small:
 * each row is a page of its own, and rows a power of two apart share the sets of the caches that
 * they wait in. 32, which writes two lines at a time, measured best. STREAM writes around the
 * caches where B's rows are aligned. Threads share A by rows. */
#include <omp.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* R x R numbers fit a set of registers; a block is made of (16 / R)^2 of those. */
#if defined(__AVX512F__)
#define R 16
#elif defined(__AVX__)
#define R 8
#else
#define R 4
#endif

typedef float vec __attribute__((vector_size(R * 4)));
typedef float loose __attribute__((vector_size(R * 4), aligned(4), may_alias));

/* Lines of one row of a tile, and how many of 16 follow each other. */
enum { LINES = TN / 16, RUN = LINES < 16 ? LINES : 16 };

enum { PARTS = TM / 16 }; /* cache lines of a run that leaves */

struct walk {
    int64_t lda, ldb;
    float *waiting; /* where in B the other strip belongs; NULL: it is empty */
    int current, stream;
};

static _Thread_local float strips[2][16 * TM] __attribute__((aligned(64)));

/* Inside groups of four lanes: numbers, then pairs of numbers, of two vectors alternate. EVEN and
 * ODD take every other group of four, HALF_0 and HALF_1 a half of each vector. */
#if R == 16
#define LOW    0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define HIGH   2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define LOW_2  0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define EVEN   0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27
#define ODD    4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31
#elif R == 8
#define LOW    0, 8, 1, 9, 4, 12, 5, 13
#define HIGH   2, 10, 3, 11, 6, 14, 7, 15
#define LOW_2  0, 1, 8, 9, 4, 5, 12, 13
#define HIGH_2 2, 3, 10, 11, 6, 7, 14, 15
#define HALF_0 0, 1, 2, 3, 8, 9, 10, 11
#define HALF_1 4, 5, 6, 7, 12, 13, 14, 15
#else
#define LOW    0, 4, 1, 5
#define HIGH   2, 6, 3, 7
#define LOW_2  0, 1, 4, 5
#define HIGH_2 2, 3, 6, 7
#endif

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* R x R numbers, turned round in place: first every group of four rows by itself, which leaves
 * columns 4 q + c in group q of lanes of y[c], then the groups among each other. */
static inline void turn(vec x[R])
{
    vec y[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; r += 4) {
        vec a = __builtin_shufflevector(x[r], x[r + 1], LOW);
        vec b = __builtin_shufflevector(x[r], x[r + 1], HIGH);
        vec c = __builtin_shufflevector(x[r + 2], x[r + 3], LOW);
        vec d = __builtin_shufflevector(x[r + 2], x[r + 3], HIGH);
        y[r] = __builtin_shufflevector(a, c, LOW_2);
        y[r + 1] = __builtin_shufflevector(a, c, HIGH_2);
        y[r + 2] = __builtin_shufflevector(b, d, LOW_2);
        y[r + 3] = __builtin_shufflevector(b, d, HIGH_2);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
#if R == 16
        vec e = __builtin_shufflevector(y[c], y[4 + c], EVEN);
        vec f = __builtin_shufflevector(y[8 + c], y[12 + c], EVEN);
        vec g = __builtin_shufflevector(y[c], y[4 + c], ODD);
        vec h = __builtin_shufflevector(y[8 + c], y[12 + c], ODD);
        x[c] = __builtin_shufflevector(e, f, EVEN);
        x[4 + c] = __builtin_shufflevector(g, h, EVEN);
        x[8 + c] = __builtin_shufflevector(e, f, ODD);
        x[12 + c] = __builtin_shufflevector(g, h, ODD);
#elif R == 8
        x[c] = __builtin_shufflevector(y[c], y[4 + c], HALF_0);
        x[4 + c] = __builtin_shufflevector(y[c], y[4 + c], HALF_1);
#else
        x[c] = y[c];
#endif
    }
}

static inline void store(float *to, vec x, int stream)
{
#if STREAM && R == 16
    if (stream) {
        _mm512_stream_ps(to, (__m512)x);
        return;
    }
#elif STREAM && R == 8
    if (stream) {
        _mm256_stream_ps(to, (__m256)x);
        return;
    }
#elif STREAM && defined(__SSE__)
    if (stream) {
        _mm_stream_ps(to, (__m128)x);
        return;
    }
#endif
    (void)stream;
    *(loose *)to = x;
}

/* 16 x 16 numbers of A, turned; the result's rows are ldb apart. */
static inline void block(const float *a, int64_t lda, float *b, int64_t ldb)
{
    for (int j = 0; j < 16; j += R)
        for (int i = 0; i < 16; i += R) {
            vec x[R];
#pragma GCC unroll 16
            for (int r = 0; r < R; r++)
                x[r] = *(const loose *)(a + (i + r) * lda + j);
            turn(x);
#pragma GCC unroll 16
            for (int r = 0; r < R; r++)
                *(loose *)(b + (j + r) * ldb + i) = x[r];
        }
}

/* Lines [first, first + 16) of the strip that waits. */
static inline void leave(const struct walk *walk, uint64_t first)
{
    const float *from = strips[!walk->current];
#pragma GCC unroll 16
    for (uint64_t l = first; l < first + 16; l++) {
        float *to = walk->waiting + (int64_t)(l / PARTS) * walk->ldb + l % PARTS * 16;
#pragma GCC unroll 4
        for (int k = 0; k < 16; k += R)
            store(to + k, *(const loose *)(from + l * 16 + k), walk->stream);
    }
}

static void flush(struct walk *walk)
{
    for (uint64_t l = 0; l < TM && walk->waiting != NULL; l += 16)
        leave(walk, l);
    walk->waiting = NULL;
#if STREAM && defined(__SSE__)
    _mm_sfence();
#endif
}

/* Lines [first, first + 16) of a tile, row after row; `first` is a multiple of 16. */
static inline void fetch(const float *tile, int64_t lda, uint64_t first)
{
#pragma GCC unroll 4
    for (uint64_t l = first; l < first + 16; l += RUN) {
        const float *line = tile + (int64_t)(l / LINES) * lda + l % LINES * 16;
#pragma GCC unroll 16
        for (int k = 0; k < RUN; k++)
            __builtin_prefetch(line + k * 16, 0, NEAR);
    }
}

static void edge(const float *a, int64_t lda, float *b, int64_t ldb, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            b[j * ldb + i] = a[i * lda + j];
}

/* A whole tile; `next` is the tile to prefetch, NULL where there is no whole one. */
static void tile(struct walk *walk, const float *a, float *b, const float *next)
{
    uint64_t at = 0;
    for (int64_t j = 0; j < TN; j += 16) {
        float *into = strips[walk->current];
        for (int64_t i = 0; i < TM; i += 16, at += 16) {
            if (next)
                fetch(next, walk->lda, at);
            block(a + i * walk->lda + j, walk->lda, into + i, TM);
            if (walk->waiting)
                leave(walk, (uint64_t)i);
        }
        walk->waiting = b + j * walk->ldb;
        walk->current = !walk->current;
    }
}

/* What is less than a tile. */
static void part(const struct walk *walk, const float *a, float *b, int64_t rows, int64_t columns)
{
    int64_t whole_rows = rows / 16 * 16, whole_columns = columns / 16 * 16;
    int64_t lda = walk->lda, ldb = walk->ldb;
    for (int64_t j = 0; j < whole_columns; j += 16)
        for (int64_t i = 0; i < whole_rows; i += 16)
            block(a + i * lda + j, lda, b + j * ldb + i, ldb);
    edge(a + whole_columns, lda, b + whole_columns * ldb, ldb, whole_rows, columns - whole_columns);
    edge(a + whole_rows * lda, lda, b + whole_rows, ldb, rows - whole_rows, columns);
}

/* Rows [from, to) of A: one column of tiles after the other, downwards. */
static void share(const float *A, float *B, int64_t M, int64_t N, int64_t from, int64_t to)
{
    struct walk walk = {.lda = N, .ldb = M, .stream = M % 16 == 0};
    for (int64_t j = 0; j < N; j += TN)
        for (int64_t i = from; i < to; i += TM) {
            const float *a = A + i * N + j, *next = NULL;
            float *b = B + j * M + i;
            if (i + 2 * TM <= to && j + TN <= N)
                next = a + TM * N;
            else if (i + TM >= to && from + TM <= to && j + 2 * TN <= N)
                next = A + from * N + j + TN;
            if (i + TM <= to && j + TN <= N)
                tile(&walk, a, b, next);
            else
                part(&walk, a, b, min64(TM, to - i), min64(TN, N - j));
        }
    flush(&walk);
}

void kernel(const float *A, float *B, int64_t M, int64_t N)
{
    int small = M * N < 16384;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t bands = (M + TM - 1) / TM;
        share(A, B, M, N, min64(bands * thread / threads * TM, M),
              min64(bands * (thread + 1) / threads * TM, M));
    }
}
