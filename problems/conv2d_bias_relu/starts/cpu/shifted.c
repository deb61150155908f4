/*---
tune:
  KR: [4, 2, 6, 8, 12]
  NV: [2, 1, 3, 4]
  VB: [32, 64]
  BAND: [4, 1, 2, 8, 16]
  OUTER: [0, 1]
  where: KR*NV + NV < 32 && (VB == 64 || KR*NV <= 24)
workspace:
  band:
    dtype: float32
    shape:
      - N * ceil_div(OH, BAND)
      - C * STRIDE * STRIDE
      - round_up(BAND * (OW + (S - 1) / STRIDE), NV * VB / 4) + R * (OW + S)
---*/
/* conv2d's shifted.c with bias and rectifier before the sums leave the registers: convolution
 * without a matrix of patches. A band of BAND output rows is one long line of outputs:
 * the input rows that it needs are copied, with their zero borders, so that for every place (r, s)
 * of the filter the inputs of neighbouring outputs are neighbours too, a fixed shift away. (With a
 * step over 1 the copy is split by the remainders of row and column.) The register tile is KR
 * filters by NV vectors of VB bytes of that line; what it computes past the end of a row is
 * dropped. OUTER says whether filters or stretches of the line are the outer loop. Each thread
 * copies the bands it works on, so there is one parallel region and no barrier. */
#include <omp.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, WIDTH = NV * LANES };

struct shape {
    int64_t C, H, W, K, R, S, pad, step, OH, OW;
    int64_t pitch; /* of a row in the band's line: OW and what the filter overhangs */
    int64_t plane; /* numbers of one channel and remainder */
};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* band[c][row remainder][column remainder][row][pitch] of the output rows from `top`. */
static void copy(const struct shape *sh, const float *image, int64_t top, float *band)
{
    int64_t step = sh->step, rows = BAND + (sh->R - 1) / step;
    memset(band, 0, (size_t)(sh->C * step * step * sh->plane) * sizeof(float));
    for (int64_t c = 0; c < sh->C; c++) {
        for (int64_t y = 0; y < rows * step; y++) {
            int64_t from_y = top * step + y - sh->pad;
            if (from_y < 0 || from_y >= sh->H)
                continue;
            const float *from = image + (c * sh->H + from_y) * sh->W;
            for (int64_t q = 0; q < step; q++) {
                float *to = band + ((c * step + y % step) * step + q) * sh->plane;
                to += y / step * sh->pitch;
                /* Columns j with 0 <= j*step + q - pad < W. */
                int64_t first = sh->pad > q ? (sh->pad - q + step - 1) / step : 0;
                int64_t end = (sh->W + sh->pad - q + step - 1) / step;
                end = min64(end, sh->pitch);
                int64_t shift = q - sh->pad;
                if (step == 1 && first < end)
                    memcpy(to + first, from + (first + shift),
                           (size_t)(end - first) * sizeof(float));
                for (int64_t j = first; step != 1 && j < end; j++)
                    to[j] = from[j * step + shift];
            }
        }
    }
}

/* What follows a sum: bias, rectifier. */
static inline vec finish(vec sum, const float *after)
{
    vec x = sum + *after;
    return (vec)(~(x < 0) & (mask)x);
}

/* Results of `count` filters over WIDTH outputs from `line` on; out[count][WIDTH]. */
static inline void tile(const struct shape *sh, const float *line, const float *filters,
                        const float *after, float *out, const int count)
{
    int64_t step = sh->step, taps = sh->C * sh->R * sh->S;
    vec sum[KR][NV];
#pragma GCC unroll 16
    for (int k = 0; k < count; k++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            sum[k][v] = (vec){0};
    for (int64_t c = 0; c < sh->C; c++) {
        for (int64_t r = 0; r < sh->R; r++) {
            const float *row = line + (c * step + r % step) * step * sh->plane;
            row += r / step * sh->pitch;
            for (int64_t s = 0, q = 0; s < sh->S; s++, filters++) {
                const float *x = row + q * sh->plane;
                vec seen[NV];
#pragma GCC unroll 4
                for (int v = 0; v < NV; v++)
                    seen[v] = ((const vec *)x)[v];
#pragma GCC unroll 16
                for (int k = 0; k < count; k++)
#pragma GCC unroll 4
                    for (int v = 0; v < NV; v++)
                        sum[k][v] += filters[k * taps] * seen[v];
                if (++q == step) {
                    q = 0;
                    row++;
                }
            }
        }
    }
#pragma GCC unroll 16
    for (int k = 0; k < count; k++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            ((vec *)(out + k * WIDTH))[v] = finish(sum[k][v], after + k);
}

/* From places [at, at + WIDTH) of the line to rows of Y, overhang dropped. */
static void drop(const struct shape *sh, const float *out, int64_t at, int64_t rows, float *y,
                 int count)
{
    for (int64_t i = at / sh->pitch; i < rows && i * sh->pitch < at + WIDTH; i++) {
        int64_t first = i * sh->pitch > at ? i * sh->pitch : at;
        int64_t end = min64(i * sh->pitch + sh->OW, at + WIDTH);
        for (int k = 0; k < count && first < end; k++)
            memcpy(y + k * sh->OH * sh->OW + i * sh->OW + first - i * sh->pitch,
                   out + k * WIDTH + first - at, (size_t)(end - first) * sizeof(float));
    }
}

static void stretch(const struct shape *sh, const float *band, const float *F, const float *after,
                    float *y, int64_t k, int64_t at, int64_t rows)
{
    float out[KR * WIDTH] __attribute__((aligned(64)));
    int64_t taps = sh->C * sh->R * sh->S;
    if (k + KR <= sh->K) {
        tile(sh, band + at, F + k * taps, after + k, out, KR);
        drop(sh, out, at, rows, y + k * sh->OH * sh->OW, KR);
        return;
    }
    for (; k < sh->K; k++) {
        tile(sh, band + at, F + k * taps, after + k, out, 1);
        drop(sh, out, at, rows, y + k * sh->OH * sh->OW, 1);
    }
}

/* Output rows [top, top + rows) of one image, for all filters. */
static void compute(const struct shape *sh, const float *band, const float *F, const float *after,
                    float *y, int64_t rows)
{
    int64_t length = (rows - 1) * sh->pitch + sh->OW;
    if (OUTER) {
        for (int64_t at = 0; at < length; at += WIDTH)
            for (int64_t k = 0; k < sh->K; k += KR)
                stretch(sh, band, F, after, y, k, at, rows);
    } else {
        for (int64_t k = 0; k < sh->K; k += KR)
            for (int64_t at = 0; at < length; at += WIDTH)
                stretch(sh, band, F, after, y, k, at, rows);
    }
}

void kernel(const float *X, const float *F, const float *bias, float *Y, float *band, int64_t N,
            int64_t C, int64_t H, int64_t W, int64_t K, int64_t R, int64_t S, int64_t PAD,
            int64_t STRIDE, int64_t OH, int64_t OW)
{
    struct shape sh = {C, H, W, K, R, S, PAD, STRIDE, OH, OW, OW + (S - 1) / STRIDE, 0};
    int64_t length = (BAND * sh.pitch + WIDTH - 1) / WIDTH * WIDTH;
    int64_t bands = (OH + BAND - 1) / BAND, items = N * bands;
    int small = N * K * OH * OW * C * R * S < 64 * 64 * 64;
    sh.plane = length + (R - 1) / STRIDE * sh.pitch + (S - 1) / STRIDE;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t first = items * thread / threads, end = items * (thread + 1) / threads;
        /* The memory of the thread's first item serves for all of its items: it stays cached. */
        float *own = band + first * C * STRIDE * STRIDE * sh.plane;
        for (int64_t w = first; w < end; w++) {
            int64_t n = w / bands, top = w % bands * BAND;
            copy(&sh, X + n * C * H * W, top, own);
            compute(&sh, own, F, bias, Y + (n * K * OH + top) * OW, min64(BAND, OH - top));
        }
    }
}
