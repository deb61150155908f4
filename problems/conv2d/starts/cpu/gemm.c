/*---
tune:
  KR: [4, 2, 6, 8, 12]
  NV: [2, 1, 3, 4]
  VB: [32, 64]
  KC: [144, 72, 288, 576]
  KU: [1, 2]
  DYNAMIC: [0, 1]
  where: KR*NV + NV < 32 && (VB == 64 || KR*NV <= 24)
---*/
/* Convolution as a matrix product, filters (K x C*R*S) times patches (C*R*S x pixels), of which
 * only a panel is ever written down: KC taps by one register tile of NV vectors of VB bytes,
 * gathered into a buffer that stays in the first-level cache while all filters pass by, KR at a
 * time. A piece of work is one stretch of an image's output pixels; threads take pieces in order
 * or, DYNAMIC, as they become free. */
#include <omp.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, WIDTH = NV * LANES };

struct shape {
    int64_t C, H, W, K, R, S, pad, step, OH, OW;
};

static _Thread_local float panel[KC * WIDTH] __attribute__((aligned(64)));

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The inputs of output pixels [from, from + width) under one place (r, s) of one channel's filter.
 */
static void gather_tap(const struct shape *sh, const float *channel, int64_t r, int64_t s,
                       int64_t from, int64_t width, float *out)
{
    int64_t i = from / sh->OW, j = from % sh->OW, done = 0;
    memset(out, 0, WIDTH * sizeof(float));
    for (; done < width; i++, j = 0) {
        int64_t count = min64(sh->OW - j, width - done), y = i * sh->step + r - sh->pad;
        if (y >= 0 && y < sh->H) {
            const float *row = channel + y * sh->W;
            int64_t x = j * sh->step + s - sh->pad, first = 0, end = count;
            if (x < 0)
                first = (-x + sh->step - 1) / sh->step;
            end = min64(end, (sh->W - x + sh->step - 1) / sh->step);
            if (sh->step == 1 && first < end)
                memcpy(out + done + first, row + (x + first),
                       (size_t)(end - first) * sizeof(float));
            for (int64_t at = first; sh->step != 1 && at < end; at++)
                out[done + at] = row[x + at * sh->step];
        }
        done += count;
    }
}

/* Taps [tap, tap + depth) of the patches of those pixels: panel[depth][WIDTH]. */
static void gather(const struct shape *sh, const float *image, int64_t tap, int64_t depth,
                   int64_t from, int64_t width)
{
    int64_t s = tap % sh->S, r = tap / sh->S % sh->R, c = tap / sh->S / sh->R;
    for (int64_t t = 0; t < depth; t++) {
        gather_tap(sh, image + c * sh->H * sh->W, r, s, from, width, panel + t * WIDTH);
        if (++s == sh->S) {
            s = 0;
            if (++r == sh->R) {
                r = 0;
                c++;
            }
        }
    }
}

static inline void step(const float *f, int64_t taps, const float *patch, vec sum[KR][NV],
                        const int count)
{
    vec row[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; v++)
        row[v] = ((const vec *)patch)[v];
#pragma GCC unroll 16
    for (int k = 0; k < count; k++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            sum[k][v] += f[k * taps] * row[v];
}

/* out[count][WIDTH] = f[count][depth] * panel[depth][WIDTH] */
static inline void tile(const float *f, int64_t taps, int64_t depth, float *out, int64_t pitch,
                        int accumulate, const int count)
{
    vec sum[KR][NV];
#pragma GCC unroll 16
    for (int k = 0; k < count; k++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            sum[k][v] = (vec){0};
    int64_t t = 0;
    for (; t + KU <= depth; t += KU)
#pragma GCC unroll 2
        for (int u = 0; u < KU; u++)
            step(f + t + u, taps, panel + (t + u) * WIDTH, sum, count);
    for (; t < depth; t++)
        step(f + t, taps, panel + t * WIDTH, sum, count);
#pragma GCC unroll 16
    for (int k = 0; k < count; k++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++) {
            vec *to = (vec *)(out + k * pitch) + v;
            if (accumulate)
                sum[k][v] += *to;
            *to = sum[k][v];
        }
}

static void add_narrow(const float *from, float *y, int64_t pixels, int64_t width, int count,
                       int accumulate)
{
    for (int k = 0; k < count; k++)
        for (int64_t j = 0; j < width; j++)
            y[k * pixels + j] = from[k * WIDTH + j] + (accumulate ? y[k * pixels + j] : 0);
}

/* One stretch of pixels, all filters; y points at the stretch in the first filter's output. */
static void piece(const struct shape *sh, const float *image, const float *F, float *y,
                  int64_t from, int64_t width)
{
    int64_t taps = sh->C * sh->R * sh->S, pixels = sh->OH * sh->OW;
    float whole[KR * WIDTH] __attribute__((aligned(64)));
    for (int64_t tap = 0; tap < taps; tap += KC) {
        int64_t depth = min64(KC, taps - tap);
        gather(sh, image, tap, depth, from, width);
        for (int64_t k = 0; k < sh->K;) {
            const float *f = F + k * taps + tap;
            int count = k + KR <= sh->K ? KR : 1;
            if (width == WIDTH && count == KR)
                tile(f, taps, depth, y + k * pixels, pixels, tap > 0, KR);
            else if (width == WIDTH)
                tile(f, taps, depth, y + k * pixels, pixels, tap > 0, 1);
            else {
                if (count == KR)
                    tile(f, taps, depth, whole, WIDTH, 0, KR);
                else
                    tile(f, taps, depth, whole, WIDTH, 0, 1);
                add_narrow(whole, y + k * pixels, pixels, width, count, tap > 0);
            }
            k += count;
        }
    }
}

#if DYNAMIC
#define ORDER schedule(dynamic, 1)
#else
#define ORDER schedule(static)
#endif

void kernel(const float *X, const float *F, float *Y, int64_t N, int64_t C, int64_t H, int64_t W,
            int64_t K, int64_t R, int64_t S, int64_t PAD, int64_t STRIDE, int64_t OH, int64_t OW)
{
    struct shape sh = {C, H, W, K, R, S, PAD, STRIDE, OH, OW};
    int64_t pixels = OH * OW, each = (pixels + WIDTH - 1) / WIDTH;
    int small = N * K * pixels * C * R * S < 64 * 64 * 64;
#pragma omp parallel for ORDER if (!small)
    for (int64_t w = 0; w < N * each; w++) {
        int64_t n = w / each, from = w % each * WIDTH;
        piece(&sh, X + n * C * H * W, F, Y + n * K * pixels + from, from,
              min64(WIDTH, pixels - from));
    }
}
