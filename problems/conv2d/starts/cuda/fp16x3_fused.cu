/*---
workspace:
  packed:
    shape: >
      ceil_div(K, FILTERS),
      round_up(ceil_div(C*STRIDE*STRIDE, 8) * ceil_div(R, STRIDE) * ceil_div(S, STRIDE), 2*DEPTH),
      16*FILTERS + 8
    dtype: float16
  units: {shape: ["round_up(K, FILTERS)"], dtype: float32}
  strays: {shape: ["round_up(K, FILTERS)", 16], dtype: int32}
launch:
  - entry: split
    grid: round_up(K, FILTERS)
    block: 64
    args: [F, packed, units, strays, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW]
  - entry: conv2d
    grid: >
      ceil_div(K, FILTERS)
      * max(1, min(N * ceil_div(OH, 8) * ceil_div(OW, 8), sm_count / ceil_div(K, FILTERS)))
    block: 512
    shared: "227328"
    args: [X, F, packed, units, strays, Y, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW]
tune:
  FILTERS: [64, 96]
  DEPTH: [4, 3]
  where: >
    ceil_div(C*STRIDE*STRIDE, 8) * (7 + ceil_div(R, STRIDE)) * (7 + ceil_div(S, STRIDE))
    <= 1536 - 8*FILTERS
    && round_up(ceil_div(C*STRIDE*STRIDE, 8) * ceil_div(R, STRIDE) * ceil_div(S, STRIDE), 2*DEPTH)
    * (32*FILTERS + 16) + 64 * ceil_div(C*STRIDE*STRIDE, 8)
    * (7 + ceil_div(R, STRIDE)) * (7 + ceil_div(S, STRIDE)) <= 227328
---*/
/* A convolution in float32 by three products in float16, as matmul's fp16x3.cu, for filters that
 * fit in shared memory. Numbers become high + low / 2048 in a unit that is a power of two: one for
 * each filter, and one for what a tile of 8 x 8 outputs needs of an image (its halo), so that the
 * largest is between 2^14 and 2^15. What is under 2^-14 then is left out, listed, and added at the
 * end; a tile with more than 32 such numbers, or more than 15 in one of its filters, or whose
 * largest number is outside 2^-60 to 2^60, is made a number at a time.
 *
 * `split` makes the filters' parts. In `conv2d` a block brings FILTERS of them to shared memory
 * once. Half of its warps read halos, the next one already while they wait for room, take their
 * units, and store the parts; two warpgroups multiply tiles in turns. A step of STRIDE is taken out
 * by making channels of what it passes over: STRIDE * STRIDE times as many, in a filter of as many
 * places fewer. In shared memory eight channels of a pixel are 16 bytes, and pixels of the same
 * channels are side by side: what one place of the filter is multiplied with begins so many pixels
 * further on. Two eights make a step of the matrix unit, whichever they are: `steps` says where. */
#include <cuda_fp16.h>

#ifndef FILLERS
#define FILLERS 256 /* threads that fill halos, and how many eights of channels each holds */
#define SLOTS   (FILTERS == 96 ? 3 : 4)
#define FEW     (FILTERS == 96 ? 72 : 80) /* registers of theirs, and of the others */
#define MANY    (FILTERS == 96 ? 184 : 176)
#endif
#define THREADS     (256 + FILLERS)
#define MEMORY      227328
#define MOST_HALOS  4
#define MOST_STEPS  (MEMORY / (2 * PITCH) + DEPTH)
#define MOST_EIGHTS (SLOTS * FILLERS / 64)  /* of at least 64 pixels */
#define MOST_STRAYS 32                      /* of a halo */
#define MOST_OF_ONE 15                      /* of a filter: behind their number */
#define LEAST       6.103515625e-05f        /* 2^-14 */
#define PITCH       (2 * FILTERS * 16 + 16) /* bytes from one eight of all filters to the next */

struct shape {
    int N, C, H, W, K, R, S, pad, stride, OH, OW;
};

struct work {
    int down, across, tiles, blocks, block; /* of outputs; blocks of filters, this block's */
    int wide, pixels;                       /* of a halo */
    int places, places_across;              /* of a filter, with its steps taken out */
    int eights, channels, groups;           /* groups of DEPTH steps */
    int halos;
    unsigned filters, halo, part; /* where they are, and bytes of a part of a halo */
    bool fits;
};

/* A packed channel: how far behind a pixel's first number it is in an image; its row and column in
 * a step; whether there is one. */
struct alignas(16) channel {
    int offset, row, column, there;
};

/* What a block knows of its filters and halos. */
struct notes {
    struct work work;
    unsigned long long full[MOST_HALOS], empty[MOST_HALOS], filters;
    unsigned steps[MOST_STEPS];
    struct channel channels[8 * MOST_EIGHTS];
    alignas(16) float units[FILTERS];
    int most_of_one; /* strays of a filter */
    alignas(16) int most[2][FILLERS / 32]; /* of a warp's numbers */
    float scale[MOST_HALOS];
    int strays[MOST_HALOS], stray[MOST_HALOS][MOST_STRAYS];
};

static __device__ __forceinline__ struct work work_of(const struct shape *s, unsigned begin)
{
    struct work w;
    w.down = (s->OH + 7) / 8;
    w.across = (s->OW + 7) / 8;
    w.tiles = s->N * w.down * w.across;
    w.blocks = (s->K + FILTERS - 1) / FILTERS;
    w.block = (int)blockIdx.x % w.blocks;
    w.places_across = (s->S + s->stride - 1) / s->stride;
    w.places = (s->R + s->stride - 1) / s->stride * w.places_across;
    w.wide = 7 + w.places_across;
    w.pixels = (7 + w.places / w.places_across) * w.wide;
    w.channels = s->C * s->stride * s->stride;
    w.eights = (w.channels + 7) / 8;
    w.groups = (w.eights * w.places + 2 * DEPTH - 1) / (2 * DEPTH);
    w.part = 16 * w.eights * w.pixels;
    w.filters = begin;
    w.fits = w.eights <= SLOTS * FILLERS / w.pixels && w.groups <= MOST_STEPS / DEPTH;
    const int left = w.fits ? MEMORY - w.groups * 2 * DEPTH * PITCH : 0;
    w.halos = min(MOST_HALOS, left / (2 * (int)w.part));
    w.halo = begin + w.groups * 2 * DEPTH * PITCH;
    w.fits = w.halos >= 2;
    return w;
}

/* What brings the largest number to between 2^14 and 2^15, or 0. */
static __device__ __forceinline__ float scale_of(int most)
{
    const int exponent = most == 0 ? 0 : (most >> 23) - 127;
    return exponent < -60 || exponent > 60 ? 0.0f
                                           : __uint_as_float((unsigned)(141 - exponent) << 23);
}

/* ---- shared memory */

static __device__ __forceinline__ unsigned address(const void *shared)
{
    return (unsigned)__cvta_generic_to_shared(shared);
}

static __device__ __forceinline__ void barrier_init(const void *barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(count)
                 : "memory");
}

static __device__ __forceinline__ void barrier_wait(const void *barrier, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(address(barrier)), "r"(parity)
                     : "memory");
}

/* The calling warp's part is done. */
static __device__ __forceinline__ void barrier_arrive(const void *barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}

/* What was stored is there for the matrix unit. */
static __device__ __forceinline__ void publish()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ __forceinline__ void store_eight(unsigned to, uint4 v)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
}

static __device__ __forceinline__ void fetch(unsigned to, const char *from, int bytes,
                                             const void *barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)),
                 "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(address(barrier))
        : "memory");
}

/* ---- parts */

/* Of a power of two that is not near the ends of float32. */
static __device__ __forceinline__ float inverse(float scale)
{
    return __uint_as_float(0x7f000000 - __float_as_uint(scale));
}

/* The least magnitude that is not left out. */
static __device__ __forceinline__ float least_of(float scale)
{
    return scale == 0 ? 0.0f : LEAST * inverse(scale);
}

/* Eight numbers become parts, those under the least zeros. */
static __device__ __forceinline__ void part(const float *x, float scale, float least, uint4 *high,
                                            uint4 *low)
{
    unsigned h[4], l[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 y = make_float2(fabsf(x[2 * i]) < least ? 0 : x[2 * i] * scale,
                                     fabsf(x[2 * i + 1]) < least ? 0 : x[2 * i + 1] * scale);
        const __half2 first = __float22half2_rn(y);
        const float2 back = __half22float2(first);
        const __half2 rest =
            __floats2half2_rn((y.x - back.x) * 2048.0f, (y.y - back.y) * 2048.0f);
        h[i] = *(const unsigned *)&first;
        l[i] = *(const unsigned *)&rest;
    }
    *high = make_uint4(h[0], h[1], h[2], h[3]);
    *low = make_uint4(l[0], l[1], l[2], l[3]);
}

/* Which numbers are left out, by bits. */
template <int COUNT>
static __device__ __forceinline__ unsigned long long left_out(const float (&x)[COUNT], float least)
{
    unsigned long long which = 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if (x[i] != 0 && fabsf(x[i]) < least)
            which |= 1ull << i;
    return which;
}

/* ---- filters */

#define SHAPE                                                                                      \
    {                                                                                              \
        (int)N, (int)C, (int)H, (int)W, (int)K, (int)R, (int)S, (int)PAD, (int)STRIDE, (int)OH,    \
            (int)OW                                                                                \
    }

/* A block a filter: its eights as shared memory has them, its unit, how many strays it has, and
 * where they are. */
extern "C" __global__ void __launch_bounds__(64)
    split(const float *F, char *packed, float *units, int *strays, long long N, long long C,
          long long H, long long W, long long K, long long R, long long S, long long PAD,
          long long STRIDE, long long OH, long long OW)
{
    __shared__ int most, count;
    const struct shape s = SHAPE;
    const struct work w = work_of(&s, 0);
    const int filter = (int)blockIdx.x, taps = filter < s.K ? s.C * s.R * s.S : 0,
              eights = w.groups * 2 * DEPTH;
    const float *from = F + (long long)filter * taps;
    unsigned mine = 0;
    if (!w.fits)
        return;
    if (threadIdx.x == 0)
        most = count = 0;
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < taps; i += 64)
        mine = max(mine, __float_as_uint(from[i]) & 0x7fffffff);
    atomicMax(&most, (int)mine);
    __syncthreads();
    const float scale = scale_of(most);
    char *to = packed + (long long)(filter / FILTERS) * eights * PITCH + filter % FILTERS * 16;
    for (int i = threadIdx.x; i < eights; i += 64) {
        const int place = i % w.places, r0 = place / w.places_across * s.stride,
                  q0 = place % w.places_across * s.stride;
        float x[8];
        int at[8];
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const int deep = i / w.places * 8 + e, c = deep / s.stride / s.stride,
                      r = r0 + deep / s.stride % s.stride, q = q0 + deep % s.stride;
            at[e] = (c * s.R + r) * s.S + q;
            x[e] = taps > 0 && c < s.C && r < s.R && q < s.S ? from[at[e]] : 0.0f;
        }
        const float least = least_of(scale);
#pragma unroll
        for (int e = 0; e < 8; e++)
            if (x[e] != 0 && fabsf(x[e]) < least) {
                const int number = atomicAdd(&count, 1);
                if (number < MOST_OF_ONE)
                    strays[filter * (MOST_OF_ONE + 1) + 1 + number] = at[e];
            }
        uint4 *const eight_of_all = (uint4 *)(to + (long long)i * PITCH);
        part(x, scale, least, eight_of_all, eight_of_all + FILTERS);
        if (filter % FILTERS == 0) /* what keeps the eights' banks apart */
            eight_of_all[2 * FILTERS] = make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        units[filter] = inverse(scale);
        strays[filter * (MOST_OF_ONE + 1)] = scale == 0 ? MOST_OF_ONE + 1 : count;
    }
}

/* ---- halos */

/* Where channels are in an image, and where what is multiplied is in a halo. */
static __device__ __forceinline__ void note_places(struct notes *notes, const struct shape *s,
                                                   const struct work *w)
{
    for (int i = threadIdx.x; i < 8 * MOST_EIGHTS; i += THREADS) {
        const int c = i / s->stride / s->stride, row = i / s->stride % s->stride,
                  column = i % s->stride;
        notes->channels[i] = {(c * s->H + row) * s->W + column, row, column, c < s->C};
    }
    for (int i = threadIdx.x; i < MOST_STEPS; i += THREADS) {
        int at[2]; /* none: zeros among the filters, times what is there */
        for (int half = 0; half < 2; half++) {
            const int number = 2 * i + half, place = number % w->places;
            at[half] = number < w->eights * w->places
                           ? number / w->places * w->pixels + place / w->places_across * w->wide +
                                 place % w->places_across
                           : 0;
        }
        notes->steps[i] = at[0] | max(at[1] - at[0], 0) << 16;
    }
}

struct place {
    int image, top, left; /* of outputs */
};

static __device__ __forceinline__ struct place place_of(const struct work *w, int tile)
{
    return {tile / w->across / w->down, tile / w->across % w->down * 8, tile % w->across * 8};
}

/* Which eight of channels, row and column of the pixel. */
static __device__ __forceinline__ void eight_of(const struct work *w, int number, int *eight,
                                                int *row, int *column)
{
    *eight = number / w->pixels;
    *row = number % w->pixels / w->wide;
    *column = number % w->pixels % w->wide;
}

/* One or two numbers, or zeros. Written out, so that they need no place of their own meanwhile. */
static __device__ __forceinline__ void load(float *x, const float *from, bool in)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\nmov.b32 %0, 0;\n"
                 "@p ld.global.nc.f32 %0, [%1];\n}"
                 : "=f"(x[0])
                 : "l"(from), "r"((int)in));
}

static __device__ __forceinline__ void load_pair(float *x, const float *from, bool in)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n"
                 "@p ld.global.nc.v2.f32 {%0, %1}, [%2];\n}"
                 : "=f"(x[0]), "=f"(x[1])
                 : "l"(from), "r"((int)in));
}

/* A thread's eights of a halo, two columns at once if there are always both. */
template <bool PAIRS>
static __device__ __forceinline__ void load_halo(float (&x)[8 * SLOTS], unsigned (&at)[SLOTS],
                                                 const float *X, const struct notes *notes,
                                                 const struct shape *s, struct place place)
{
    const float *image = X + (long long)place.image * s->C * s->H * s->W;
#pragma unroll
    for (int u = 0; u < SLOTS; u++) {
        asm volatile("" : "+r"(at[u])); /* what follows from it is not kept in registers */
        const struct channel *channels = notes->channels + 8 * (at[u] >> 22);
        const int h0 = (place.top + (at[u] >> 11 & 2047)) * s->stride - s->pad,
                  w0 = (place.left + (at[u] & 2047)) * s->stride - s->pad;
        const float *from = image + h0 * s->W + w0;
#pragma unroll
        for (int e = 0; e < 8; e += PAIRS ? 2 : 1) {
            const int4 c = *(const int4 *)&channels[e]; /* without branches */
            const bool in = c.w & ((unsigned)(h0 + c.y) < (unsigned)s->H) &
                            ((unsigned)(w0 + c.z) < (unsigned)s->W);
            if (PAIRS)
                load_pair(x + 8 * u + e, from + c.x, in);
            else
                load(x + 8 * u + e, from + c.x, in);
        }
    }
}

struct ring {
    int slot;
    unsigned parity;
};

static __device__ __forceinline__ void advance(struct ring *ring, int slots)
{
    if (++ring->slot == slots) {
        ring->slot = 0;
        ring->parity ^= 1;
    }
}

/* What a thread leaves out of a halo's numbers is listed. */
static __device__ __forceinline__ void list_strays(const float (&x)[8 * SLOTS], float least,
                                                   struct notes *notes, int slot,
                                                   const struct shape *s, const struct work *w,
                                                   struct place place)
{
    int eight, row, column;
    for (unsigned long long which = left_out(x, least); which != 0; which &= which - 1) {
        const int number = __ffsll((long long)which) - 1, at = atomicAdd(&notes->strays[slot], 1);
        eight_of(w, (int)threadIdx.x + number / 8 * FILLERS, &eight, &row, &column);
        if (at < MOST_STRAYS)
            notes->stray[slot][at] = notes->channels[8 * eight + number % 8].offset +
                                     ((place.top + row) * s->stride - s->pad) * s->W +
                                     (place.left + column) * s->stride - s->pad;
    }
}

template <bool PAIRS>
static __device__ __forceinline__ void fill_halos(const float *X, struct notes *notes,
                                                  const struct shape *s, const struct work *w)
{
    const int eights = w->eights * w->pixels, step = (int)gridDim.x / w->blocks,
              last = w->tiles - 1;
    struct ring ring = {0, 1}; /* nobody waits for what was never filled */
    unsigned at[SLOTS];
    float x[8 * SLOTS];
#pragma unroll
    for (int u = 0; u < SLOTS; u++) {
        int eight, row, column;
        eight_of(w, (int)threadIdx.x + FILLERS * u, &eight, &row, &column);
        at[u] = (unsigned)(eight << 22 | row << 11 | column);
    }
    int tile = (int)blockIdx.x / w->blocks;
    struct place place = place_of(w, tile);
    load_halo<PAIRS>(x, at, X, notes, s, place);
    for (int turn = 0; tile <= last; turn ^= 1) {
        const int slot = ring.slot;
        const struct place next = place_of(w, min(tile + step, last)); /* while numbers come */
        unsigned most = 0, smallest = ~0u; /* twice a magnitude's bits; less one, zeros apart */
#pragma unroll
        for (int i = 0; i < 8 * SLOTS; i++) {
            const unsigned twice = 2 * __float_as_uint(x[i]);
            most = max(most, twice);
            smallest = min(smallest, twice - 1);
        }
        most = __reduce_max_sync(~0u, most);
        barrier_wait(&notes->empty[slot], ring.parity);
        if (threadIdx.x % 32 == 0)
            notes->most[turn][threadIdx.x / 32] = (int)(most / 2);
        if (threadIdx.x == 0)
            notes->strays[slot] = 0;
        asm volatile("bar.sync 1, %0;" ::"n"(FILLERS) : "memory");
        int all = 0;
#pragma unroll
        for (int i = 0; i < FILLERS / 32; i++)
            all = max(all, notes->most[turn][i]);
        const float scale = scale_of(all), least = least_of(scale);
        if (threadIdx.x == 0)
            notes->scale[slot] = scale;
        if (least != 0 && smallest < 2 * __float_as_uint(least) - 1)
            list_strays(x, least, notes, slot, s, w, place);
        const unsigned to = w->halo + 2 * slot * w->part;
#pragma unroll
        for (int u = 0; u < SLOTS; u++) {
            const int i = (int)threadIdx.x + FILLERS * u;
            uint4 high, low;
            part(x + 8 * u, scale, least, &high, &low);
            if (i < eights) {
                store_eight(to + 16 * i, high);
                store_eight(to + w->part + 16 * i, low);
            }
        }
        publish();
        barrier_arrive(&notes->full[slot]);
        advance(&ring, w->halos);
        tile += step;
        place = next;
        load_halo<PAIRS>(x, at, X, notes, s, place);
    }
}

/* ---- the products */

/* Eights of 8 pixels or filters are 128 bytes, the next 8 are `next` times 16 bytes further on. */
static __device__ __forceinline__ unsigned long long describe(unsigned at, unsigned next)
{
    return (unsigned long long)next << 32 | at;
}

#define FLOATS_8(d, i)                                                                             \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define FLOATS_16(d, i) FLOATS_8(d, i), FLOATS_8(d, i + 8)
#define FLOATS_32(d, i) FLOATS_16(d, i), FLOATS_16(d, i + 16)

#define NUMBERS_32                                                                                 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"       \
    "%24,%25,%26,%27,%28,%29,%30,%31"
#if FILTERS == 96
#define FLOATS(d) FLOATS_32(d, 0), FLOATS_16(d, 32)
#define PRODUCT                                                                                    \
    "{\n.reg .pred p;\nsetp.ne.b32 p, %50, 0;\n"                                                   \
    "wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {" NUMBERS_32                              \
    ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47}, %48, %49, p, 1, 1, 0, "    \
    "0;\n}"
#else
#define FLOATS(d) FLOATS_32(d, 0)
#define PRODUCT                                                                                    \
    "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                                   \
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" NUMBERS_32                              \
    "}, %32, %33, p, 1, 1, 0, 0;\n}"
#endif

/* 64 pixels by filters, 16 channels deep; what was in d counts if `more`. */
#define MULTIPLY(d, a, b, more)                                                                    \
    asm volatile(PRODUCT : FLOATS(d) : "l"(a), "l"(b), "r"((int)(more)))
#define WAIT(d, left)                                                                              \
    asm volatile("wgmma.wait_group.sync.aligned " left ";" : FLOATS(d)::"memory")

#define HALF (FILTERS / 2)

/* DEPTH steps from `at` on, which then is the next group's. The product of the high parts begins
 * anew. */
static __device__ __forceinline__ void multiply_group(float (&sum)[HALF], float (&others)[HALF],
                                                      unsigned (&at)[DEPTH], const unsigned *next,
                                                      unsigned filters, unsigned halo,
                                                      unsigned part, unsigned wide, bool more)
{
    float first[HALF];
    unsigned long long high[DEPTH], low[DEPTH], of_filters[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        high[k] = describe(at[k] + halo / 16, wide);
        low[k] = describe(at[k] + halo / 16 + part / 16, wide);
        of_filters[k] = describe((filters / 16 + 2 * k * PITCH / 16) | (PITCH / 16) << 16, 8);
    }
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
        MULTIPLY(first, high[k], of_filters[k], k > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        MULTIPLY(others, high[k], of_filters[k] + FILTERS, k > 0 || more);
        MULTIPLY(others, low[k], of_filters[k], 1);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
        at[k] = next[k];
    WAIT(first, "1");
#pragma unroll
    for (int i = 0; i < HALF; i++)
        sum[i] += first[i];
}

/* ---- outputs */

/* A number at a time, in float32. */
static __device__ __forceinline__ void plain(const float *X, const float *F, float *Y,
                                             const struct shape *s, const struct work *w,
                                             struct place place)
{
    const int n = place.image, top = place.top, left = place.left;
#pragma unroll 1
    for (int i = threadIdx.x % 128; i < 64 * FILTERS; i += 128) {
        const int k = w->block * FILTERS + i / 64, oh = top + i / 8 % 8, ow = left + i % 8;
        if (k >= s->K || oh >= s->OH || ow >= s->OW)
            continue;
        const float *f = F + (long long)k * s->C * s->R * s->S;
        float sum = 0;
#pragma unroll 1
        for (int c = 0; c < s->C; c++)
#pragma unroll 1
            for (int r = 0; r < s->R; r++)
#pragma unroll 1
                for (int q = 0; q < s->S; q++, f++) {
                    const int h = oh * s->stride - s->pad + r, x = ow * s->stride - s->pad + q;
                    if (h >= 0 && h < s->H && x >= 0 && x < s->W)
                        sum = fmaf(X[(((long long)n * s->C + c) * s->H + h) * s->W + x], *f, sum);
                }
        Y[(((long long)n * s->K + k) * s->OH + oh) * s->OW + ow] = sum;
    }
}

/* What was left out of X, times F, and what was left out of F, times what was not left out of X. */
static __device__ __forceinline__ void add_strays(const float *X, const float *F,
                                                  const int *of_filters, float *Y,
                                                  const struct notes *notes,
                                                  const struct shape *s, const struct work *w,
                                                  struct place place, int slot, int of_halo,
                                                  float scale)
{
    const int taps = s->C * s->R * s->S;
    const float least = least_of(scale);
    const float *image = X + (long long)place.image * s->C * s->H * s->W;
#pragma unroll 1
    for (int i = threadIdx.x % 128; i < 64 * FILTERS; i += 128) {
        const int k = w->block * FILTERS + i / 64, oh = place.top + i / 8 % 8,
                  ow = place.left + i % 8;
        const float *f = F + (long long)k * taps;
        const int *strays = of_filters + k * (MOST_OF_ONE + 1);
        float sum = 0;
        if (k >= s->K || oh >= s->OH || ow >= s->OW)
            continue;
#pragma unroll 1
        for (int j = 0; j < of_halo; j++) {
            const int at = notes->stray[slot][j], r = at / s->W % s->H + s->pad - oh * s->stride,
                      q = at % s->W + s->pad - ow * s->stride, c = at / s->W / s->H;
            if (r >= 0 && r < s->R && q >= 0 && q < s->S)
                sum = fmaf(image[at], f[(c * s->R + r) * s->S + q], sum);
        }
#pragma unroll 1
        for (int j = 1; j <= strays[0]; j++) {
            const int at = strays[j], h = oh * s->stride + at / s->S % s->R - s->pad,
                      x = ow * s->stride + at % s->S - s->pad;
            if (h < 0 || h >= s->H || x < 0 || x >= s->W)
                continue;
            const float v = image[(at / (s->R * s->S) * s->H + h) * s->W + x];
            if (fabsf(v) >= least)
                sum = fmaf(v, f[at], sum);
        }
        if (sum != 0)
            Y[(((long long)place.image * s->K + k) * s->OH + oh) * s->OW + ow] += sum;
    }
}

/* A thread's outputs: of two rows, two filters of every eight. */
static __device__ __forceinline__ void store(float *Y, const float *units, const struct shape *s,
                                             const struct work *w, const float (&sum)[HALF],
                                             const float (&others)[HALF], struct place place,
                                             float unit)
{
    const int lane = threadIdx.x % 32, oh = place.top + threadIdx.x / 32 % 4 * 2,
              ow = place.left + lane / 4, k = w->block * FILTERS + lane % 4 * 2;
    const long long plane = (long long)s->OH * s->OW;
    const int upper = oh < s->OH && ow < s->OW ? s->K - k : 0,
              lower = oh + 1 < s->OH && ow < s->OW ? s->K - k : 0; /* filters that there are */
    float *y = Y + ((long long)place.image * s->K + k) * plane + (long long)oh * s->OW + ow,
          *z = y + s->OW;
    units += lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < HALF; i += 4, y += 8 * plane, z += 8 * plane) {
        const float2 of_filters = *(const float2 *)(units + 2 * i);
        const float first = of_filters.x * unit, second = of_filters.y * unit;
        if (upper > 2 * i)
            y[0] = fmaf(others[i], 1.0f / 2048, sum[i]) * first;
        if (lower > 2 * i)
            z[0] = fmaf(others[i + 2], 1.0f / 2048, sum[i + 2]) * first;
        if (upper > 2 * i + 1)
            y[plane] = fmaf(others[i + 1], 1.0f / 2048, sum[i + 1]) * second;
        if (lower > 2 * i + 1)
            z[plane] = fmaf(others[i + 3], 1.0f / 2048, sum[i + 3]) * second;
    }
}

static __device__ __forceinline__ void multiply_tiles(const float *X, const float *F,
                                                      const int *of_filters, float *Y,
                                                      struct notes *notes, const struct shape *s,
                                                      const struct work *w)
{
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0) - FILLERS / 128,
              step = (int)gridDim.x / w->blocks;
    const unsigned wide = w->wide, part = w->part, of_block = w->filters;
    const int groups = w->groups;
    struct ring ring = {group, 0};
    if (w->fits)
        barrier_wait(&notes->filters, 0);
    for (int tile = (int)blockIdx.x / w->blocks + group * step; tile < w->tiles;
         tile += 2 * step) {
        const struct place place = place_of(w, tile);
        bool fine = w->fits;
        if (fine) {
            const int slot = ring.slot;
            float sum[HALF], others[HALF];
            unsigned at[DEPTH];
#pragma unroll
            for (int i = 0; i < HALF; i++)
                sum[i] = others[i] = 0;
#pragma unroll
            for (int k = 0; k < DEPTH; k++)
                at[k] = notes->steps[k];
            barrier_wait(&notes->full[slot], ring.parity);
            const float scale = notes->scale[slot];
            const int strays = notes->strays[slot];
            const unsigned halo = w->halo + 2 * slot * part;
#pragma unroll 1
            for (int g = 0; g < groups; g++)
                multiply_group(sum, others, at, notes->steps + DEPTH * (g + 1),
                               of_block + g * 2 * DEPTH * PITCH, halo, part, wide, g > 0);
            WAIT(others, "0");
            if (strays == 0)
                barrier_arrive(&notes->empty[slot]);
            fine = scale != 0 && strays <= MOST_STRAYS && notes->most_of_one <= MOST_OF_ONE;
            if (fine)
                store(Y, notes->units, s, w, sum, others, place, inverse(scale));
            if (fine && strays + notes->most_of_one > 0) {
                if (group == 0)
                    asm volatile("bar.sync 2, 128;" ::: "memory");
                else
                    asm volatile("bar.sync 3, 128;" ::: "memory");
                add_strays(X, F, of_filters, Y, notes, s, w, place, slot, strays, scale);
            }
            if (strays != 0)
                barrier_arrive(&notes->empty[slot]);
            advance(&ring, w->halos);
            advance(&ring, w->halos);
        }
        if (!fine)
            plain(X, F, Y, s, w, place);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    conv2d(const float *X, const float *F, const char *packed, const float *units,
           const int *strays, float *Y, long long N, long long C, long long H, long long W,
           long long K, long long R, long long S, long long PAD, long long STRIDE, long long OH,
           long long OW)
{
    extern __shared__ __align__(128) char memory[];
    __shared__ struct notes notes;
    const struct shape s = SHAPE;
    const struct work &w = notes.work;
    if (threadIdx.x == 0) {
        notes.work = work_of(&s, address(memory));
        notes.most_of_one = 0;
        for (int i = 0; i < MOST_HALOS; i++) {
            barrier_init(&notes.full[i], FILLERS / 32);
            barrier_init(&notes.empty[i], 4);
        }
        barrier_init(&notes.filters, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        const int bytes = w.groups * 2 * DEPTH * PITCH;
        if (w.fits)
            fetch(w.filters, packed + (long long)w.block * bytes, bytes, &notes.filters);
    }
    __syncthreads();
    if (w.fits) {
        note_places(&notes, &s, &w);
        if (threadIdx.x < FILTERS) {
            const int filter = w.block * FILTERS + (int)threadIdx.x;
            notes.units[threadIdx.x] = units[filter];
            atomicMax(&notes.most_of_one, strays[filter * (MOST_OF_ONE + 1)]);
        }
    }
    __syncthreads();
    if (threadIdx.x < FILLERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(FEW));
        if (!w.fits)
            return;
        if (s.stride % 2 == 0 && s.W % 2 == 0 && s.pad % 2 == 0)
            fill_halos<true>(X, &notes, &s, &w);
        else
            fill_halos<false>(X, &notes, &s, &w);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(MANY));
        multiply_tiles(X, F, strays, Y, &notes, &s, &w);
    }
}
