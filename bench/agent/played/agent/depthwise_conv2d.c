/*---
tune:
  STREAM: [1]
  AHEAD: [4096]
  LEVEL: [2]
  TALL: [4]
  CHUNK: [8]
---*/
/* depthwise_conv2d, r1-c7: no champion: too noisy to say whether r1-c7 is faster than naive
 * Compile: gcc -std=gnu17 -O3 -march=native -fopenmp -shared -fPIC (and the flags of its `compile`
 * key, if it has one). Call: kernel(inputs..., outputs..., workspaces..., dims...),
 * pointers to row-major tensors, dims as int64_t, in the order of the problem's spec.
 * Evaluate: twagent eval depthwise_conv2d THIS_FILE */
#include <stddef.h>
#include <stdint.h>
#ifndef STREAM
#define STREAM 1
#endif
#ifndef AHEAD
#define AHEAD 4096
#endif
#ifndef LEVEL
#define LEVEL 2
#endif
#ifndef TALL
#define TALL 4
#endif
#ifndef CHUNK
#define CHUNK 8
#endif

/* Depthwise convolution in place. 3x3 at step 1: TALL rows by 16 columns of the result at a time,
 * whose loads are masked to zeros where they would leave the image, so that edges are vectors as
 * well; rows that are whole lines are stored past the caches (STREAM), and AHEAD numbers further on
 * are fetched into the cache of LEVEL 3 (the first) or 2. Other filters: a register tile of ROWS
 * rows by NV vectors, whose inputs are loaded where they lie, and a number at a time at the edges,
 * as is everything at a step over 1. Threads take one share of the planes (CHUNK 0), or CHUNK
 * planes as they become free. */
#include <omp.h>
#include <stdint.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

enum { VB = 32, NV = 2, ROWS = 2 };

typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));

enum { LANES = VB / 4, WIDTH = NV * LANES };

struct shape {
    int64_t H, W, R, S, pad, step, OH, OW;
};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static float one(const struct shape *sh, const float *image, const float *f, int64_t i, int64_t j)
{
    int64_t top = i * sh->step - sh->pad, left = j * sh->step - sh->pad;
    float sum = 0;
    for (int64_t r = top < 0 ? -top : 0; r < sh->R && top + r < sh->H; r++)
        for (int64_t s = left < 0 ? -left : 0; s < sh->S && left + s < sh->W; s++)
            sum += image[(top + r) * sh->W + left + s] * f[r * sh->S + s];
    return sum;
}

/* `rows` by `count` vectors from `x` on, all places inside of the image; to y. */
static inline void tile(const float *x, int64_t W, const float *f, const int64_t R, const int64_t S,
                        float *y, int64_t OW, const int rows, const int count)
{
    vec sum[ROWS][NV];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < count; v++)
            sum[i][v] = (vec){0};
#pragma GCC unroll 4
    for (int64_t r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int64_t s = 0; s < S; s++)
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
                for (int v = 0; v < count; v++)
                    sum[i][v] += f[r * S + s] * *(const vec *)(x + (i + r) * W + s + v * LANES);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < count; v++)
            *(vec *)(y + i * OW + v * LANES) = sum[i][v];
}

static inline void known(const float *x, int64_t W, const float *f, int64_t R, int64_t S, float *y,
                         int64_t OW, const int rows, const int count)
{
    if (R == 3 && S == 3)
        tile(x, W, f, 3, 3, y, OW, rows, count);
    else
        tile(x, W, f, R, S, y, OW, rows, count);
}

/* Rows [i, i + rows), all of whose places are inside of the image from column `lo` to `hi`. */
static inline void inner(const struct shape *sh, const float *image, const float *f, float *y,
                         int64_t i, int64_t lo, int64_t hi, const int rows)
{
    const float *x = image + (i - sh->pad) * sh->W - sh->pad;
    int64_t j = lo;
    for (; j + WIDTH <= hi; j += WIDTH)
        known(x + j, sh->W, f, sh->R, sh->S, y + i * sh->OW + j, sh->OW, rows, NV);
    for (; j + LANES <= hi; j += LANES)
        known(x + j, sh->W, f, sh->R, sh->S, y + i * sh->OW + j, sh->OW, rows, 1);
    for (; j < hi; j++)
        for (int k = 0; k < rows; k++)
            y[(i + k) * sh->OW + j] = one(sh, image, f, i + k, j);
}

static void band(const struct shape *sh, const float *image, const float *f, float *y, int64_t from,
                 int64_t to)
{
    int64_t lo = min64(sh->pad, sh->OW), hi = sh->W + sh->pad - sh->S + 1;
    hi = hi < lo ? lo : min64(hi, sh->OW);
    for (int64_t i = from; i < to;) {
        int64_t rows = 1;
        int whole = sh->step == 1 && i >= sh->pad;
        if (whole && i + ROWS <= to && i + ROWS - 1 - sh->pad + sh->R <= sh->H)
            rows = ROWS;
        else
            whole = whole && i - sh->pad + sh->R <= sh->H;
        for (int64_t k = i; k < i + rows; k++) {
            for (int64_t j = 0; j < (whole ? lo : sh->OW); j++)
                y[k * sh->OW + j] = one(sh, image, f, k, j);
            for (int64_t j = hi; whole && j < sh->OW; j++)
                y[k * sh->OW + j] = one(sh, image, f, k, j);
        }
        if (whole && rows == ROWS)
            inner(sh, image, f, y, i, lo, hi, ROWS);
        else if (whole)
            inner(sh, image, f, y, i, lo, hi, 1);
        i += rows;
    }
}

#if defined(__AVX512F__)
/* Lanes of 16 columns from `column` on that are in the image. */
static inline __mmask16 inside(int64_t column, int64_t W)
{
    int64_t count = W - column;
    uint32_t mask = count >= 16 ? 0xffff : count <= 0 ? 0 : (1u << count) - 1;
    if (column < 0)
        mask &= column <= -16 ? 0 : 0xffffu << -column;
    return (__mmask16)mask;
}

static inline void put(float *to, __m512 v, __mmask16 mask, const int whole)
{
    if (whole && STREAM)
        _mm512_stream_ps(to, v);
    else if (whole)
        _mm512_storeu_ps(to, v);
    else
        _mm512_mask_storeu_ps(to, mask, v);
}

/* TALL rows by 16 columns, `there`: which of the TALL + 2 rows of the image are in it. */
static inline void tall(const struct shape *sh, const float *const *row, const __mmask16 *there,
                        const __m512 f[3][3], float *y, int64_t i, int64_t j, const int inner,
                        const int whole)
{
    int64_t column = j - sh->pad;
    __m512 sum[TALL];
    __mmask16 mask[3] = {0, 0, 0};
    for (int k = 0; k < TALL; k++)
        sum[k] = _mm512_setzero_ps();
    for (int s = 0; s < 3 && !inner; s++)
        mask[s] = inside(column + s, sh->W);
    if (AHEAD)
        for (int t = 2; t < TALL + 2; t++)
            __builtin_prefetch(row[t] + j + AHEAD, 0, LEVEL);
#pragma GCC unroll 6
    for (int t = 0; t < TALL + 2; t++)
#pragma GCC unroll 3
        for (int s = 0; s < 3; s++) {
            const float *at = row[t] + column + s;
            __m512 v = inner ? _mm512_loadu_ps(at) : _mm512_maskz_loadu_ps(mask[s] & there[t], at);
#pragma GCC unroll 3
            for (int r = 0; r < 3; r++)
                if (t - r >= 0 && t - r < TALL)
                    sum[t - r] = _mm512_fmadd_ps(v, f[r][s], sum[t - r]);
        }
#pragma GCC unroll 4
    for (int k = 0; k < TALL; k++)
        if (inner || i + k < sh->OH)
            put(y + (i + k) * sh->OW + j, sum[k], whole ? 0xffff : inside(j, sh->OW), whole);
}

static inline void three(const struct shape *sh, const float *image, const float *filter, float *y,
                         const int whole)
{
    __m512 f[3][3];
    for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++)
            f[r][s] = _mm512_set1_ps(filter[3 * r + s]);
    for (int64_t i = 0; i < sh->OH; i += TALL) {
        const float *row[TALL + 2];
        __mmask16 there[TALL + 2];
        int all = i + TALL <= sh->OH;
        for (int t = 0; t < TALL + 2; t++) {
            int64_t at = i - sh->pad + t;
            there[t] = at >= 0 && at < sh->H ? 0xffff : 0;
            all = all && there[t];
            row[t] = image + (there[t] ? at : 0) * sh->W;
        }
        for (int64_t j = 0; j < sh->OW; j += 16)
            if (all && j >= sh->pad && j - sh->pad + 18 <= sh->W && j + 16 <= sh->OW)
                tall(sh, row, there, f, y, i, j, 1, whole);
            else
                tall(sh, row, there, f, y, i, j, 0, whole);
    }
}
#endif

static void plane(const struct shape *sh, const float *image, const float *f, float *y)
{
#if defined(__AVX512F__)
    if (sh->R == 3 && sh->S == 3 && sh->step == 1) {
        if (sh->OW % 16 == 0 && ((uintptr_t)y & 63) == 0)
            three(sh, image, f, y, 1);
        else
            three(sh, image, f, y, 0);
        return;
    }
#endif
    band(sh, image, f, y, 0, sh->OH);
}

void kernel(const float *X, const float *F, float *Y, int64_t N, int64_t C, int64_t H, int64_t W,
            int64_t R, int64_t S, int64_t PAD, int64_t STRIDE, int64_t OH, int64_t OW)
{
    struct shape sh = {H, W, R, S, PAD, STRIDE, OH, OW};
    int64_t chunk = CHUNK ? CHUNK : 1;
    int small = N * C * OH * OW * R * S < 64 * 64 * 64;
#pragma omp parallel if (!small)
    {
        if (CHUNK == 0) {
#pragma omp for schedule(static) nowait
            for (int64_t p = 0; p < N * C; p++)
                plane(&sh, X + p * H * W, F + p % C * R * S, Y + p * OH * OW);
        } else {
#pragma omp for schedule(dynamic, chunk) nowait
            for (int64_t p = 0; p < N * C; p++)
                plane(&sh, X + p * H * W, F + p % C * R * S, Y + p * OH * OW);
        }
#if STREAM && defined(__AVX512F__)
        _mm_sfence();
#endif
    }
}
