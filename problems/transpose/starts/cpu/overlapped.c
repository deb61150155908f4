/*---
tune:
  RB: [16, 8, 4]
  TM: [32, 64, 128]
  TN: [512, 64, 256]
  PAD: [16, 0]
  SUPER: [1024, 0]
  STREAM: [1, 0]
  AHEAD: [2, 1, 0]
  where: TM*TN <= 32768
---*/
/* Transposition through two buffers, so that reading, turning and writing overlap: while one tile
 * of TM rows by TN columns is turned into a buffer, in blocks of RB x RB in registers, the tile
 * before it leaves the other buffer in runs of TM numbers, and the rows AHEAD blocks further
 * down are prefetched. PAD keeps the buffer's columns apart in the
 * cache. Tiles are walked inside squares of SUPER (0: the whole share), whose pages the translation
 * buffers can hold. STREAM writes around the caches where B's rows are aligned. Threads share A by
 * rows. */
#include <omp.h>
#include <stddef.h>
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

typedef float line __attribute__((vector_size(64), aligned(4), may_alias));

enum {
    LINE = TM + PAD,
    PARTS = TM / 16,  /* cache lines of a run that leaves */
    ACROSS = TN / 16, /* cache lines of a tile's row */
    SHARE = RB * RB / 16
};

static _Thread_local float buffers[2][TN * LINE] __attribute__((aligned(64)));

struct walk {
    int64_t lda, ldb;
    int current, stream;
    float *waiting; /* where in B the other buffer's tile belongs; NULL: it is empty */
};

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

/* 16 numbers of one run. */
static inline void leave(const float *from, float *to, int stream)
{
#if STREAM && defined(__AVX512F__)
    if (stream) {
        _mm512_stream_ps(to, _mm512_loadu_ps(from));
        return;
    }
#elif STREAM && defined(__AVX__)
    if (stream) {
        _mm256_stream_ps(to, _mm256_loadu_ps(from));
        _mm256_stream_ps(to + 8, _mm256_loadu_ps(from + 8));
        return;
    }
#endif
    (void)stream;
    *(line *)to = *(const line *)from;
}

static void flush(struct walk *walk)
{
    const float *from = buffers[!walk->current];
    if (walk->waiting == NULL)
        return;
    for (int64_t j = 0; j < TN; j++)
        for (int64_t p = 0; p < PARTS; p++)
            leave(from + j * LINE + p * 16, walk->waiting + j * walk->ldb + p * 16, walk->stream);
    walk->waiting = NULL;
}

/* Lines [first, first + SHARE) of RB rows of a tile, row after row, as memory likes them best. */
static inline void fetch(const float *rows, int64_t lda, int64_t first)
{
    for (int64_t l = first; l < first + SHARE; l++)
        __builtin_prefetch(rows + l / ACROSS * lda + l % ACROSS * 16, 0, 3);
}

/* A whole tile into the current buffer, the waiting one out; `below` rows of A follow from a on. */
static void turn(struct walk *walk, const float *a, float *b, int64_t below)
{
    float *into = buffers[walk->current];
    const float *from = buffers[!walk->current];
    int64_t at = 0;
    for (int64_t i = 0; i < TM; i += RB) {
        const float *next = a + (i + AHEAD * RB) * walk->lda;
        int more = AHEAD > 0 && i + (AHEAD + 1) * RB <= below;
        for (int64_t j = 0; j < TN; j += RB, at += SHARE) {
            if (more)
                fetch(next, walk->lda, j / RB * SHARE);
            block(a + i * walk->lda + j, walk->lda, into + j * LINE + i);
            for (int64_t l = at; walk->waiting != NULL && l < at + SHARE; l++)
                leave(from + l / PARTS * LINE + l % PARTS * 16,
                      walk->waiting + l / PARTS * walk->ldb + l % PARTS * 16, walk->stream);
        }
    }
    walk->waiting = b;
    walk->current = !walk->current;
}

static void edge(const struct walk *walk, const float *a, float *b, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            b[j * walk->ldb + i] = a[i * walk->lda + j];
}

/* Tiles down one strip of columns after the other, inside [i0, i1) x [j0, j1). */
static void square(struct walk *walk, const float *A, float *B, int64_t i0, int64_t i1, int64_t j0,
                   int64_t j1)
{
    for (int64_t j = j0; j < j1; j += TN)
        for (int64_t i = i0; i < i1; i += TM) {
            const float *a = A + i * walk->lda + j;
            float *b = B + j * walk->ldb + i;
            if (i + TM > i1 || j + TN > j1)
                edge(walk, a, b, min64(TM, i1 - i), min64(TN, j1 - j));
            else
                turn(walk, a, b, i1 - i);
        }
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
        struct walk walk = {N, M, 0, M % 16 == 0, NULL};
        for (int64_t i = from; i < to; i += height)
            for (int64_t j = 0; j < N; j += width)
                square(&walk, A, B, i, min64(i + height, to), j, min64(j + width, N));
        flush(&walk);
#if STREAM && defined(__SSE__)
        _mm_sfence();
#endif
    }
}
