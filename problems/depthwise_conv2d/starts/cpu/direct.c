/*---
tune:
  VB: [32, 64, 16]
  NV: [2, 1, 4]
  ROWS: [2, 1, 4]
  BAND: [32, 8, 1024]
  where: NV * ROWS <= 8
---*/
/* Depthwise convolution in place: a register tile of ROWS rows by NV vectors of VB bytes of the
 * result, whose inputs are loaded where they lie, once for each place of the filter. What hangs over
 * the image's edges is computed a number at a time, as is everything at a step over 1. Threads take
 * bands of BAND rows. */
#include <omp.h>
#include <stdint.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

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

void kernel(const float *X, const float *F, float *Y, int64_t N, int64_t C, int64_t H, int64_t W,
            int64_t R, int64_t S, int64_t PAD, int64_t STRIDE, int64_t OH, int64_t OW)
{
    struct shape sh = {H, W, R, S, PAD, STRIDE, OH, OW};
    int64_t bands = (OH + BAND - 1) / BAND;
    int small = N * C * OH * OW * R * S < 64 * 64 * 64;
#pragma omp parallel for schedule(static) if (!small)
    for (int64_t b = 0; b < N * C * bands; b++) {
        int64_t plane = b / bands, from = b % bands * BAND;
        band(&sh, X + plane * H * W, F + plane % C * R * S, Y + plane * OH * OW, from,
             min64(from + BAND, OH));
    }
}
