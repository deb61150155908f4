/*---
tune:
  P: [7, 6, 8, 9, 14, 13, 12, 4, 3]
  NV: [4, 2, 3]
  VB: [64, 32]
  TAPS: [108, 72, 196, 1152]
  PIXELS: [224, 448, 112, 896, 28]
  where: >
    P*NV >= VB * 9 / 32 && P*NV <= 28 && (VB == 64 || P*NV <= 12) && VB <= max(vector_bytes, 32)
workspace:
  slabs:
    dtype: float32
    shape:
      - >
        min(ceil_div(N * OH, min(max(PIXELS / round_up(OW, P), 1), N * OH))
        * ceil_div(K, NV * VB / 4), 128)
      - C * STRIDE + 1
      - >
        min(max(PIXELS / round_up(OW, P), 1), N * OH) * STRIDE
        + R * (min(max(PIXELS / round_up(OW, P), 1), N * OH) / OH + 2)
      - round_up(OW, P) + (S - 1) / STRIDE
  sums:
    dtype: float32
    shape:
      - >
        min(ceil_div(N * OH, min(max(PIXELS / round_up(OW, P), 1), N * OH))
        * ceil_div(K, NV * VB / 4), 128)
      - max(PIXELS, round_up(OW, P)) + VB / 4
      - NV * VB / 4
---*/
/* Convolution with a lane a filter. The register tile is P outputs of a row by NV vectors of VB
 * bytes: each tap of the filters is NV loads, each input one number for all lanes, at a constant
 * distance from its neighbour's. For that the inputs of some rows of outputs (PIXELS, about) are
 * copied with their border into a slab, split by the remainders of columns where the step is over
 * 1, and filters are packed with lanes side by side. TAPS of them at a time pass by all tiles of a
 * slab, so few that they stay in the first-level cache; sums wait in memory meanwhile, and leave it
 * transposed, as whole lines of the outputs, which are fetched while the last sums are computed. */
#include <omp.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));
typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef float oct __attribute__((vector_size(32)));

#ifdef __clang__ /* which would use half of a register, and unroll after it has placed arrays */
#define INLINE inline __attribute__((always_inline, min_vector_width(8 * VB)))
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { LANES = VB / 4, WIDTH = NV * LANES, KEPT = 1152, THREADS = 128 };

struct shape {
    int64_t C, H, W, K, R, S, pad, step, OH, OW;
    int64_t lines, rows;         /* rows of all images' outputs; those of a slab */
    int64_t wide;                /* OW in whole tiles */
    int64_t pitch, deep, plane;  /* in a slab: of one remainder of a row, a row, a channel */
    int64_t window, taps, chunk; /* of a channel, of a filter, and at a time */
    int64_t blocks, groups;      /* of filters and of lines */
    int resident;                /* all filters are packed at once */
};

struct own { /* a thread's */
    float *slab, *sums;
    int64_t group, block, phase; /* what the slab, `filters` and `place` are for; or -1 */
    int64_t row[PIXELS];         /* in the slab, of each line */
};

static _Thread_local float filters[KEPT * WIDTH] __attribute__((aligned(64)));
static _Thread_local int32_t place[TAPS]; /* of taps, from where an output's first one is */

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Four numbers of each of rows i, i + 4, ... */
static INLINE vec quads(const float *const row[LANES], int i, int64_t at)
{
    quad a = *(const quad *)(row[i] + at), b = *(const quad *)(row[i + 4] + at);
    oct ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
#if VB == 64
    quad c = *(const quad *)(row[i + 8] + at), d = *(const quad *)(row[i + 12] + at);
    oct cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
    return __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    return ab;
#endif
}

/* Of two vectors' fours of lanes: the low or high halves' numbers in turn, or the halves. */
#define FOUR(f, l) f(l, 0), f(l, 1), f(l, 2), f(l, 3)
#if VB == 64
#define EACH(f) FOUR(f, 0), FOUR(f, 4), FOUR(f, 8), FOUR(f, 12)
#else
#define EACH(f) FOUR(f, 0), FOUR(f, 4)
#endif
#define LOW(l, i)          (l) + (i) / 2 + (i) % 2 * LANES
#define HIGH(l, i)         (l) + 2 + (i) / 2 + (i) % 2 * LANES
#define FIRST(l, i)        (l) + (i) % 2 + (i) / 2 * LANES
#define LAST(l, i)         (l) + 2 + (i) % 2 + (i) / 2 * LANES
#define SHUFFLE(a, b, how) __builtin_shufflevector(a, b, EACH(how))

/* Columns [at, at + 4) of LANES rows. */
static INLINE void turn(const float *const row[LANES], int64_t at, vec out[4])
{
    vec a = quads(row, 0, at), b = quads(row, 1, at), c = quads(row, 2, at), d = quads(row, 3, at);
    vec low = SHUFFLE(a, b, LOW), more = SHUFFLE(c, d, LOW);
    out[0] = SHUFFLE(low, more, FIRST);
    out[1] = SHUFFLE(low, more, LAST);
    low = SHUFFLE(a, b, HIGH);
    more = SHUFFLE(c, d, HIGH);
    out[2] = SHUFFLE(low, more, FIRST);
    out[3] = SHUFFLE(low, more, LAST);
}

/* filters[count][WIDTH]: taps from `first` on of the filters from k on; past the last one it is
 * the last one again. */
static void pack(const struct shape *sh, const float *F, int64_t k, int64_t first, int64_t count,
                 float *to)
{
    for (int v = 0; v < NV && k < sh->K; v++, k += LANES, to += LANES) {
        const float *row[LANES];
        for (int i = 0; i < LANES; i++)
            row[i] = F + min64(k + i, sh->K - 1) * sh->taps + first;
        int64_t t = 0;
        for (; t + 4 <= count; t += 4) {
            vec out[4];
            turn(row, t, out);
            for (int i = 0; i < 4; i++)
                *(vec *)(to + (t + i) * WIDTH) = out[i];
        }
        for (; t < count; t++)
            for (int i = 0; i < LANES; i++)
                to[t * WIDTH + i] = row[i][t];
    }
}

static void find_places(const struct shape *sh, int64_t phase, int64_t count)
{
    int64_t s = phase % sh->S, r = phase / sh->S, c = 0;
    for (int64_t t = 0; t < count; t++) {
        int64_t row = r * sh->deep + s % sh->step * sh->pitch;
        place[t] = (int32_t)(c * sh->plane + row + s / sh->step);
        if (++s == sh->S) {
            s = 0;
            if (++r == sh->R) {
                r = 0;
                c++;
            }
        }
    }
}

/* A row by its remainders, with zeros before and behind. What is written past an end is written
 * again with what comes after it. */
static INLINE void spread(const struct shape *sh, const float *from, float *to, const int64_t step)
{
    for (int64_t q = 0; q < step; q++, to += sh->pitch) {
        int64_t shift = q - sh->pad, j = shift < 0 ? (-shift + step - 1) / step : 0;
        int64_t end = min64((sh->W - shift + step - 1) / step, sh->pitch);
        for (int64_t i = 0; i < min64(j, sh->pitch); i += LANES)
            *(vec *)(to + i) = (vec){0};
        int64_t left = max64(j, end);
        if (step == 1 && end - j >= LANES) {
            for (; j < end - LANES; j += LANES)
                *(vec *)(to + j) = *(const vec *)(from + (j + shift));
            j = end - LANES;
            *(vec *)(to + j) = *(const vec *)(from + (j + shift));
        } else
            for (; j < end; j++)
                to[j] = from[j * step + shift];
        for (; left < sh->pitch; left += LANES)
            *(vec *)(to + left) = (vec){0};
    }
}

static void copy_row(const struct shape *sh, const float *from, float *to)
{
    for (int64_t j = 0; j < sh->W; j += 16)
        __builtin_prefetch(from + sh->H * sh->W + j); /* the next channel's */
    if (sh->step == 1)
        spread(sh, from, to, 1);
    else if (sh->step == 2)
        spread(sh, from, to, 2);
    else if (sh->step == 4)
        spread(sh, from, to, 4);
    else
        spread(sh, from, to, sh->step);
}

/* slab[channel][row][remainder][pitch]: what lines [first, first + count) need. */
static void copy(const struct shape *sh, const float *X, int64_t first, int64_t count,
                 struct own *own)
{
    for (int64_t c = 0; c < sh->C; c++) {
        float *to = own->slab + c * sh->plane;
        for (int64_t l = 0, run; l < count; l += run) {
            int64_t n = (first + l) / sh->OH, i = (first + l) % sh->OH, y = i * sh->step - sh->pad;
            const float *from = X + (n * sh->C + c) * sh->H * sh->W;
            run = min64(count - l, sh->OH - i);
            for (int64_t m = 0; m < run; m++)
                own->row[l + m] = to - own->slab - c * sh->plane + m * sh->step * sh->deep;
            for (int64_t end = y + (run - 1) * sh->step + sh->R; y < end; y++, to += sh->deep)
                if (y >= 0 && y < sh->H)
                    copy_row(sh, from + y * sh->W, to);
                else
                    memset(to, 0, (size_t)sh->deep * sizeof *to);
        }
    }
}

/* out[P][WIDTH] = (or +=) the products of `count` taps, for the first nv vectors of filters. */
static INLINE void add(const float *x, const float *f, int64_t count, const int32_t *at, float *out,
                       int more, const int nv)
{
    vec sum[P][NV];
    UNROLL
    for (int p = 0; p < P; p++) {
        UNROLL
        for (int v = 0; v < nv; v++)
            sum[p][v] = (vec){0};
    }
    for (int64_t t = 0; t < count; t++, f += WIDTH) {
        const float *from = x + at[t];
        vec filter[NV];
        UNROLL
        for (int v = 0; v < nv; v++)
            filter[v] = ((const vec *)f)[v];
        UNROLL
        for (int p = 0; p < P; p++) {
            UNROLL
            for (int v = 0; v < nv; v++)
                sum[p][v] += from[p] * filter[v];
        }
    }
    UNROLL
    for (int p = 0; p < P; p++) {
        UNROLL
        for (int v = 0; v < nv; v++) {
            vec *to = (vec *)(out + p * WIDTH) + v;
            if (more)
                sum[p][v] += *to;
            *to = sum[p][v];
        }
    }
}

/* Not inlined: then what is added to x is added once for all P. */
#define TILE(nv)                                                                                   \
    static __attribute__((noinline)) void tile##nv(const float *x, const float *f, int64_t count,  \
                                                   const int32_t *at, float *out, int more)        \
    {                                                                                              \
        add(x, f, count, at, out, more, nv < NV ? nv : NV);                                        \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)

typedef void tile_function(const float *, const float *, int64_t, const int32_t *, float *, int);
static tile_function *const tiles[] = {tile1, tile2, tile3, tile4};

/* sums[count][WIDTH] to `count` neighbours of each of the filters' outputs. */
static void store(const struct shape *sh, const float *sums, int64_t count, int64_t width, float *y)
{
    int64_t pixels = sh->OH * sh->OW;
    for (int64_t q = 0; q < count; q += LANES, sums += LANES * WIDTH) {
        const float *row[LANES];
        for (int i = 0; i < LANES; i++)
            row[i] = sums + i * WIDTH;
        for (int64_t w = 0; w < width; w += 4) {
            vec out[4];
            turn(row, w, out);
            float *to = y + w * pixels + q;
            for (int64_t i = 0; i < min64(4, width - w); i++, to += pixels)
                if (q + LANES <= count)
                    *(vec *)to = out[i];
                else
                    memcpy(to, &out[i], (size_t)(count - q) * sizeof *to);
        }
    }
}

/* Line `first + l`'s place in the outputs from filter k on. */
static float *output(const struct shape *sh, float *Y, int64_t k, int64_t line)
{
    return Y + ((line / sh->OH * sh->K + k) * sh->OH + line % sh->OH) * sh->OW;
}

static void add_chunk(const struct shape *sh, int64_t t, const float *f, int64_t first,
                      int64_t count, int64_t width, float *Y, int64_t k, struct own *own)
{
    int64_t some = min64(sh->chunk, sh->taps - t), pixels = sh->OH * sh->OW;
    const float *x = own->slab + t / sh->window * sh->plane;
    if (own->phase != t % sh->window)
        find_places(sh, t % sh->window, some);
    own->phase = t % sh->window;
    tile_function *tile = tiles[(width - 1) / LANES];
    float *out = own->sums;
    for (int64_t l = 0; l < count; l++) {
        float *y = output(sh, Y, k, first + l);
        for (int64_t j = 0; j < sh->wide; j += P, out += P * WIDTH) {
            for (int64_t w = 0; w < width && t + some == sh->taps; w++)
                __builtin_prefetch(y + w * pixels + j, 1);
            tile(x + own->row[l] + j, f, some, place, out, t > 0);
        }
    }
}

/* A block of filters for the lines of a group. */
static void piece(const struct shape *sh, const float *X, const float *F, float *Y, int64_t block,
                  int64_t group, struct own *own)
{
    int64_t first = group * sh->rows, count = min64(sh->rows, sh->lines - first);
    int64_t k = block * WIDTH, width = min64(WIDTH, sh->K - k);
    int whole = sh->taps <= KEPT;
    if (own->group != group)
        copy(sh, X, first, count, own);
    if (whole && !sh->resident && own->block != block)
        pack(sh, F, k, 0, sh->taps, filters);
    own->group = group;
    own->block = block;
    for (int64_t t = 0; t < sh->taps; t += sh->chunk) {
        if (!whole)
            pack(sh, F, k, t, min64(sh->chunk, sh->taps - t), filters);
        int64_t at = sh->resident ? block * sh->taps + t : t;
        add_chunk(sh, t, filters + (whole ? at * WIDTH : 0), first, count, width, Y, k, own);
    }
    const float *sums = own->sums;
    for (int64_t l = 0, run; l < count; l += run, sums += run * sh->wide * WIDTH) {
        run = sh->wide == sh->OW ? min64(count - l, sh->OH - (first + l) % sh->OH) : 1;
        store(sh, sums, run * sh->OW, width, output(sh, Y, k, first + l));
    }
}

static struct shape plan(int64_t N, struct shape sh)
{
    sh.lines = N * sh.OH;
    sh.wide = (sh.OW + P - 1) / P * P;
    int64_t most = min64(max64(PIXELS / sh.wide, 1), sh.lines);
    sh.groups = (sh.lines + most - 1) / most;
    sh.rows = (sh.lines + sh.groups - 1) / sh.groups;
    sh.groups = (sh.lines + sh.rows - 1) / sh.rows;
    sh.pitch = sh.wide + (sh.S - 1) / sh.step;
    sh.deep = sh.step * sh.pitch;
    sh.plane = (most * sh.step + sh.R * (most / sh.OH + 2)) * sh.deep;
    sh.window = sh.R * sh.S;
    sh.taps = sh.C * sh.window;
    sh.chunk = sh.window <= TAPS ? TAPS - TAPS % sh.window : TAPS;
    sh.blocks = (sh.K + WIDTH - 1) / WIDTH;
    sh.resident = sh.blocks * sh.taps <= KEPT;
    return sh;
}

void kernel(const float *X, const float *F, float *Y, float *slabs, float *sums, int64_t N,
            int64_t C, int64_t H, int64_t W, int64_t K, int64_t R, int64_t S, int64_t PAD,
            int64_t STRIDE, int64_t OH, int64_t OW)
{
    const struct shape sh = plan(N, (struct shape){C, H, W, K, R, S, PAD, STRIDE, OH, OW});
    int64_t pieces = sh.blocks * sh.groups, left = pieces;
    int64_t threads = min64(min64(pieces, THREADS), omp_get_max_threads());
    int small = N * K * OH * OW * C * R * S < 64 * 64 * 64;
    int64_t sums_each = (max64(PIXELS, sh.wide) + LANES) * WIDTH;
#pragma omp parallel num_threads((int)threads) if (!small)
    {
        int64_t me = omp_get_thread_num(), done = 0;
        struct own own = {slabs + me * (C * sh.plane + sh.plane / STRIDE), sums + me * sums_each,
                          -1, -1, -1};
        for (int64_t b = 0; b < sh.blocks && sh.resident; b++)
            pack(&sh, F, b * WIDTH, 0, sh.taps, filters + b * sh.taps * WIDTH);
#pragma omp for schedule(dynamic) nowait
        for (int64_t w = 0; w < pieces; w++) {
            int64_t block = sh.resident ? w % sh.blocks : w / sh.groups;
            int64_t group = sh.resident ? w / sh.blocks : w % sh.groups;
            piece(&sh, X, F, Y, block, group, &own);
            done++;
        }
        __atomic_sub_fetch(&left, done, __ATOMIC_RELEASE);
        /* Whoever slept would have to be woken. */
        for (int i = 0; i < 4000 && me == 0 && __atomic_load_n(&left, __ATOMIC_ACQUIRE) > 0; i++)
            __builtin_ia32_pause();
    }
}
