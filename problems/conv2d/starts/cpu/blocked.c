/*---
tune:
  P: [6, 7, 12, 9, 8, 4, 3]
  NV: [4, 2, 3]
  VB: [64, 32]
  OWN: [1, 0]
  where: >
    P*NV >= VB * 9 / 32 && P*NV <= 28 && P <= VB / 4 && (VB == 64 || P*NV <= 12)
    && VB <= max(vector_bytes, 32)
workspace:
  packed:
    dtype: float32
    shape: ["max(ceil_div(K, NV * VB / 4), 8)", C * R * S, NV * VB / 4]
  padded:
    dtype: float32
    shape: [N, C, H + 2*PAD, W + 2*PAD]
---*/
/* Convolution with a lane a filter. The register tile is P outputs, neighbours in the order of
 * memory wherever rows and images end, by NV vectors of VB bytes: each tap of the filters is NV
 * loads, each input one number for all lanes, so that nothing is gathered and no load crosses a
 * cache line. Filters are packed for that, a block a thread when it comes to it (OWN, up to eight
 * threads) or all of them first; images are copied with their border of zeros where there is one.
 */
#include <omp.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, WIDTH = NV * LANES, ROWS = P <= 8 ? 8 : 16 };

struct shape {
    int64_t C, H, W, K, R, S, pad, step, OH, OW;
    int64_t pitch, plane; /* of a row and a channel with their border */
    int64_t taps;
};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Lane l of what becomes rows i and i + d, which differ in bit d alone. */
#define LOW(l, d)     ((l) & (d) ? LANES + (l) - (d) : (l))
#define HIGH(l, d)    ((l) & (d) ? LANES + (l) : (l) + (d))
#define FOUR(f, l, d) f(l, d), f((l) + 1, d), f((l) + 2, d), f((l) + 3, d)
#if VB == 64
#define EVERY(f, d) FOUR(f, 0, d), FOUR(f, 4, d), FOUR(f, 8, d), FOUR(f, 12, d)
#else
#define EVERY(f, d) FOUR(f, 0, d), FOUR(f, 4, d)
#endif
#define SWAP(m, rows, d)                                                                           \
    _Pragma("GCC unroll 16") for (int i = 0; i < (rows); i++) if (!(i & (d)))                      \
    {                                                                                              \
        vec a = m[i], b = m[i + (d)];                                                              \
        m[i] = __builtin_shufflevector(a, b, EVERY(LOW, d));                                       \
        m[i + (d)] = __builtin_shufflevector(a, b, EVERY(HIGH, d));                                \
    }

/* Rows become columns. Of eight rows of sixteen, the second half of m[i] is column 8 + i. */
static inline __attribute__((always_inline)) void transpose(vec *m, const int rows)
{
    SWAP(m, rows, 1)
    SWAP(m, rows, 2)
    SWAP(m, rows, 4)
#if VB == 64
    if (rows == 16)
        SWAP(m, rows, 8)
#endif
}

/* to[taps][WIDTH]: filters [k, k + WIDTH) as columns, zeros past the last. */
static void pack(const struct shape *sh, const float *F, int64_t k, float *to)
{
    int64_t taps = sh->taps, whole = taps - taps % LANES;
    for (int v = 0; v < NV; v++, k += LANES, to += LANES) {
        const float *from = F + k * taps;
        int64_t count = min64(LANES, sh->K - k);
        for (int64_t t = 0; t < whole; t += LANES) {
            vec m[LANES];
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                m[i] = i < count ? *(const vec *)(from + i * taps + t) : (vec){0};
            transpose(m, LANES);
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                *(vec *)(to + (t + i) * WIDTH) = m[i];
        }
        for (int64_t t = whole; t < taps; t++)
            for (int i = 0; i < LANES; i++)
                to[t * WIDTH + i] = i < count ? from[i * taps + t] : 0;
    }
}

static void add_border(const struct shape *sh, const float *from, float *to)
{
    memset(to, 0, (size_t)sh->plane * sizeof *to);
    to += sh->pad * (sh->pitch + 1);
    for (int64_t i = 0; i < sh->H; i++, to += sh->pitch, from += sh->W)
        memcpy(to, from, (size_t)sh->W * sizeof *to);
}

/* sum[p]: the filters' products with the image from x + at[p] on. */
static inline __attribute__((always_inline)) void
sums(const struct shape *sh, const float *x, const int64_t at[P], const float *f, vec sum[P][NV])
{
#pragma GCC unroll 16
    for (int p = 0; p < P; p++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            sum[p][v] = (vec){0};
    for (int64_t c = 0; c < sh->C; c++, x += sh->plane) {
        const float *row = x;
        for (int64_t r = 0; r < sh->R; r++, row += sh->pitch)
            for (int64_t s = 0; s < sh->S; s++, f += WIDTH) {
                vec filter[NV];
#pragma GCC unroll 4
                for (int v = 0; v < NV; v++)
                    filter[v] = ((const vec *)f)[v];
#pragma GCC unroll 16
                for (int p = 0; p < P; p++)
#pragma GCC unroll 4
                    for (int v = 0; v < NV; v++)
                        sum[p][v] += row[at[p] + s] * filter[v];
            }
    }
}

/* Outputs [first, first + count) of all images for the filters from k on. */
static void tile(const struct shape *sh, const float *image, const float *f, float *Y, int64_t k,
                 int64_t first, int64_t count)
{
    int64_t pixels = sh->OH * sh->OW, n = first / pixels, left = first % pixels;
    int64_t i = left / sh->OW, j = left % sh->OW, at[P];
    int64_t here = min64(count, pixels - left); /* in this image; the others in the next ones */
    vec sum[P][NV];
    float *y = Y + (n * sh->K + k) * pixels + left;
    for (int p = 0; p < P; p++) {
        at[p] = n * sh->C * sh->plane + (i * sh->pitch + j) * sh->step;
        if (p + 1 < count && ++j == sh->OW) {
            j = 0;
            if (++i == sh->OH) {
                i = 0;
                n++;
            }
        }
    }
    sums(sh, image, at, f, sum);
#pragma GCC unroll 4
    for (int v = 0; v < NV; v++) {
        vec m[ROWS];
#pragma GCC unroll 16
        for (int p = 0; p < ROWS; p++)
            m[p] = p < P ? sum[p][v] : (vec){0};
        transpose(m, ROWS);
        int64_t filters = min64(LANES, sh->K - k - v * LANES);
        for (int64_t q = 0; q < filters; q++) {
            const float *from = (const float *)&m[q % ROWS] + q / ROWS * ROWS;
            float *to = y + (v * LANES + q) * pixels;
            if (here == P)
                memcpy(to, from, P * sizeof *to);
            for (int64_t p = 0; p < count && here < P; p++)
                to[p + (left + p) / pixels * (sh->K - 1) * pixels] = from[p];
        }
    }
}

void kernel(const float *X, const float *F, float *Y, float *packed, float *padded, int64_t N,
            int64_t C, int64_t H, int64_t W, int64_t K, int64_t R, int64_t S, int64_t PAD,
            int64_t STRIDE, int64_t OH, int64_t OW)
{
    struct shape sh = {C, H, W, K, R, S, PAD, STRIDE, OH, OW, W + 2 * PAD, 0, C * R * S};
    sh.plane = (H + 2 * PAD) * sh.pitch;
    int64_t blocks = (K + WIDTH - 1) / WIDTH, pixels = N * OH * OW, tiles = (pixels + P - 1) / P;
    int64_t block = WIDTH * sh.taps;
    int small = N * K * OH * OW * C * R * S < 64 * 64 * 64;
    const float *image = PAD > 0 ? padded : X;
#pragma omp parallel if (!small)
    {
        int own = OWN && omp_get_num_threads() <= 8;
        float *mine = packed + omp_get_thread_num() * block;
        int64_t have = -1;
        if (!own)
#pragma omp for schedule(static) nowait
            for (int64_t b = 0; b < blocks; b++)
                pack(&sh, F, b * WIDTH, packed + b * block);
        if (PAD > 0)
#pragma omp for schedule(static) nowait
            for (int64_t m = 0; m < N * C; m++)
                add_border(&sh, X + m * H * W, padded + m * sh.plane);
#pragma omp barrier
#pragma omp for schedule(static)
        for (int64_t w = 0; w < tiles * blocks; w++) {
            int64_t b = own ? w / tiles : w % blocks, t = own ? w % tiles : w / blocks;
            if (own && have != b)
                pack(&sh, F, b * WIDTH, mine);
            have = b;
            tile(&sh, image, own ? mine : packed + b * block, Y, b * WIDTH, t * P,
                 min64(P, pixels - t * P));
        }
    }
}
