/*---
workspace:
  packed_x:
    shape: >
      2, N, OH + ceil_div(R, STRIDE) - 1, OW + ceil_div(S, STRIDE) - 1,
      round_up(C*STRIDE*STRIDE, 16)
    dtype: float16
  packed_f:
    shape: >
      ceil_div(K, 64), ceil_div(R, STRIDE), ceil_div(S, STRIDE),
      ceil_div(C*STRIDE*STRIDE, 16*DEPTH), 8192
    dtype: float16
  facts: {shape: ["4 + N + ceil_div(K, 64)"], dtype: int32}
  strays: {shape: [2, 256, 2], dtype: int32}
memset: {facts: 0}
tma:
  halo:
    tensor: packed_x
    shape: >
      2, N * (OH + ceil_div(R, STRIDE) - 1), OW + ceil_div(S, STRIDE) - 1,
      round_up(C*STRIDE*STRIDE, 16)
    box: >
      1, min(256, 15 + ceil_div(R, STRIDE)), min(256, 7 + ceil_div(S, STRIDE)), 64
    swizzle: 128B
    l2: 256B
launch:
  - entry: measure
    grid: N * PARTS + ceil_div(K, 64)
    block: 256
    args: [X, F, facts, N, C, H, W, K, R, S]
  - entry: split
    grid: >
      N * ceil_div(OH + ceil_div(R, STRIDE) - 1, EACH)
      * ceil_div(OW + ceil_div(S, STRIDE) - 1, 64)
      * ceil_div(C*STRIDE*STRIDE, 64)
      + ceil_div(K, 64) * ceil_div(R, STRIDE) * ceil_div(S, STRIDE)
      * ceil_div(C*STRIDE*STRIDE, 16*DEPTH)
    block: SPLIT
    args: [X, F, packed_x, packed_f, facts, strays, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW]
  - entry: conv2d
    grid: >
      min(ceil_div(ceil_div(N * (OH + ceil_div(R, STRIDE) - 1), 16) * ceil_div(OW, 8), 2),
      sm_count)
    block: 384
    shared: "232448"
    args: [halo, X, F, packed_f, facts, strays, Y, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW]
tune:
  DEPTH: [4, 3, 2, 1]
  PARTS: [8, 16, 32]
  SPLIT: [256, 384]
  EACH: [4, 1, 8]
  HALOS: [3, 2, 4]
---*/
/* A convolution in float32 by three products in float16, as matmul's fp16x3.cu. Numbers become high
 * + low / 2048 in a unit that is a power of two: one for each image and for every 64 filters, so
 * that the largest is between 2^14 and 2^15. What is under 2^-14 then is left out, listed, and
 * added at the end; where more than 256 are, or a largest number is outside 2^-60 to 2^60, all of
 * it is made a number at a time.
 *
 * `split` lays images out with their channels side by side, and makes channels of what a step of
 * STRIDE passes over: STRIDE * STRIDE times as many, in a filter of as many places fewer, so that
 * the step is 1. For 16 rows of 8 outputs the copy engine then brings all that they need of an
 * image, once for all places of the filter: in shared memory a place's numbers begin so many rows
 * and columns further on. In `conv2d` the first warpgroup copies, the other two have such a tile
 * each, and multiply it by all filters, 64 at a time. */
#include <cuda_fp16.h>

#define FILTER_BYTES 16384 /* 64 filters by 64 channels: high, then low */
#define MOST_BYTES   230400
#define MOST_STRAYS  256
#define LEAST        6.103515625e-05f /* 2^-14 */

struct alignas(64) map {
    char bytes[128];
};

struct stray {
    int outer, inner; /* image and channel, or filter; the place within */
};

struct shape {
    int N, C, H, W, K, R, S, pad, stride, OH, OW;
};

/* As the images are packed. */
struct packing {
    int places_down, places; /* of a filter */
    int channels, depths;    /* channels; how many times 16 * DEPTH of them */
    int rows, columns;
};

static __device__ __forceinline__ struct packing packing_of(const struct shape *s)
{
    struct packing p;
    p.places_down = (s->R + s->stride - 1) / s->stride;
    const int places_across = (s->S + s->stride - 1) / s->stride;
    p.places = p.places_down * places_across;
    p.channels = s->C * s->stride * s->stride;
    p.depths = (p.channels + 16 * DEPTH - 1) / (16 * DEPTH);
    p.rows = s->OH + p.places_down - 1;
    p.columns = s->OW + places_across - 1;
    return p;
}

/* facts: strays of X and of F, whether there is no unit, nothing; then the largest magnitudes, as
 * bits, of each image and of every 64 filters. */
static __device__ __forceinline__ bool is_plain(const int *facts)
{
    return facts[0] > MOST_STRAYS || facts[1] > MOST_STRAYS || facts[2] != 0;
}

/* What brings the largest number to between 2^14 and 2^15, or 0. */
static __device__ __forceinline__ float scale_of(int most)
{
    const int exponent = most == 0 ? 0 : (most >> 23) - 127;
    return exponent < -60 || exponent > 60 ? 0.0f
                                           : __uint_as_float((unsigned)(141 - exponent) << 23);
}

/* ---- the largest numbers */

extern "C" __global__ void __launch_bounds__(256)
    measure(const float *X, const float *F, int *facts, long long N, long long C, long long H,
            long long W, long long K, long long R, long long S)
{
    const bool filters = blockIdx.x >= N * PARTS;
    const int number = filters ? (int)(blockIdx.x - N * PARTS) : (int)blockIdx.x / PARTS;
    const long long taps = C * R * S;
    const float *from = filters ? F + number * 64 * taps : X + number * C * H * W;
    const long long count = filters ? min(K - number * 64, 64ll) * taps : C * H * W;
    const long long part = filters ? count : (count + PARTS - 1) / PARTS / 4 * 4 + 4;
    const long long begin = filters ? 0 : min(part * (blockIdx.x % PARTS), count),
                    end = min(begin + part, count);
    unsigned most = 0;
    if (count % 4 == 0 && (filters ? 64 * taps : count) % 4 == 0) {
#pragma unroll 4
        for (long long i = begin + 4 * threadIdx.x; i < end; i += 1024) {
            const uint4 x = *(const uint4 *)(from + i);
            most = max(max(most, max(x.x & 0x7fffffff, x.y & 0x7fffffff)),
                       max(x.z & 0x7fffffff, x.w & 0x7fffffff));
        }
    } else {
        for (long long i = begin + threadIdx.x; i < end; i += 256)
            most = max(most, __float_as_uint(from[i]) & 0x7fffffff);
    }
    most = __reduce_max_sync(~0u, most);
    if (threadIdx.x % 32 == 0)
        atomicMax(&facts[4 + (filters ? N : 0) + number], (int)most);
}

/* ---- packing */

static __device__ __forceinline__ unsigned pair(__half low, __half high)
{
    return (unsigned)__half_as_ushort(low) | (unsigned)__half_as_ushort(high) << 16;
}

/* Numbers side by side become parts; those that float16 cannot hold are zero, and told. */
template <int COUNT, typename Stray>
static __device__ __forceinline__ void part(const float *x, float scale, unsigned *high,
                                            unsigned *low, Stray stray)
{
#pragma unroll
    for (int i = 0; i < COUNT; i += 2) {
        __half h[2], l[2];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float y = x[i + j] * scale;
            if (y != 0 && fabsf(y) < LEAST) {
                stray(i + j);
                y = 0;
            }
            h[j] = __float2half_rn(y);
            l[j] = __float2half_rn((y - __half2float(h[j])) * 2048.0f);
        }
        high[i / 2] = pair(h[0], h[1]);
        low[i / 2] = pair(l[0], l[1]);
    }
}

static __device__ __forceinline__ void list(int *facts, struct stray *strays, int which, int outer,
                                            int inner)
{
    const int at = atomicAdd(&facts[which], 1);
    if (at < MOST_STRAYS)
        strays[which * MOST_STRAYS + at] = {outer, inner};
}

/* 64 channels of 64 columns of EACH packed rows. */
static __device__ __forceinline__ void split_image(const float *X, char *packed, int *facts,
                                                   struct stray *strays, const struct shape *s,
                                                   const struct packing *p, int number)
{
    __shared__ float tile[64 * 65];
    const int blocks = (p->channels + 63) / 64, pieces = (p->columns + 63) / 64,
              downs = (p->rows + EACH - 1) / EACH;
    const int first = number % blocks * 64, left = number / blocks % pieces * 64,
              top = number / blocks / pieces % downs * EACH,
              n = s->N - 1 - number / blocks / pieces / downs;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, stride = s->stride;
    const int stored = (p->channels + 15) / 16 * 16, wide = min(64, stored - first),
              long_ = min(64, p->columns - left);
    const float scale = scale_of(facts[4 + n]);
    /* A line is what one row of one channel gives: `stride` packed channels. */
    const int lines = (first % stride + wide + stride - 1) / stride, first_line = first / stride;
    const int eights = wide / 8;
    const long long all = (long long)s->N * p->rows * p->columns * stored * 2;
    for (int row = top; row < min(top + EACH, p->rows); row++) {
        for (int l = warp; l < lines; l += SPLIT / 32) {
            const int line = first_line + l, c = line / stride,
                      h = row * stride + line % stride - s->pad;
            const bool there = c < s->C && h >= 0 && h < s->H;
            const float *from = X + (((long long)n * s->C + c) * s->H + h) * s->W;
            for (int i = lane; i < long_ * stride; i += 256) {
                float x[8];
#pragma unroll
                for (int u = 0; u < 8; u++) {
                    const int w = left * stride + i + 32 * u - s->pad;
                    const bool in = there && i + 32 * u < long_ * stride && w >= 0 && w < s->W;
                    x[u] = in ? from[w] : 0.0f;
                }
#pragma unroll
                for (int u = 0; u < 8; u++) {
                    const int at = i + 32 * u;
                    const int column = stride == 1 ? at : stride == 4 ? at / 4 : at / stride;
                    const int channel = line * stride + (at - column * stride) - first;
                    if (at < long_ * stride && channel >= 0 && channel < wide)
                        tile[column * 65 + channel] = x[u];
                }
            }
        }
        __syncthreads();
        const long long pixel = ((long long)n * p->rows + row) * p->columns + left;
        for (int i = threadIdx.x; i < long_ * eights; i += SPLIT) {
            const int column = i / eights, channel = i % eights * 8;
            float x[8];
            unsigned high[4], low[4];
#pragma unroll
            for (int j = 0; j < 8; j++)
                x[j] = tile[column * 65 + channel + j];
            part<8>(x, scale, high, low, [&](int j) {
                const int deep = first + channel + j, c = deep / (stride * stride),
                          h = row * stride + deep / stride % stride - s->pad,
                          w = (left + column) * stride + deep % stride - s->pad;
                list(facts, strays, 0, n * s->C + c, h * s->W + w);
            });
            char *to = packed + ((pixel + column) * stored + first + channel) * 2;
            *(uint4 *)to = make_uint4(high[0], high[1], high[2], high[3]);
            *(uint4 *)(to + all) = make_uint4(low[0], low[1], low[2], low[3]);
        }
        __syncthreads();
    }
}

/* 64 filters at one of their places, 16 * DEPTH channels. */
static __device__ __forceinline__ void split_filters(const float *F, char *packed, int *facts,
                                                     struct stray *strays, const struct shape *s,
                                                     const struct packing *p, int number)
{
    const int depth = number % p->depths, place = number / p->depths % p->places,
              block = number / p->depths / p->places, across = p->places / p->places_down;
    const float scale = scale_of(facts[4 + s->N + block]);
    char *to = packed + (long long)number * FILTER_BYTES;
    for (int i = threadIdx.x; i < 64 * 8; i += SPLIT) {
        const int k = block * 64 + i / 8, chunk = i % 8;
        float x[8];
        int inner[8];
        unsigned high[4], low[4];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int deep =
                8 * chunk + j < 16 * DEPTH ? depth * 16 * DEPTH + 8 * chunk + j : p->channels;
            const int c = deep / (s->stride * s->stride),
                      r = place / across * s->stride + deep / s->stride % s->stride,
                      q = place % across * s->stride + deep % s->stride;
            inner[j] = (c * s->R + r) * s->S + q;
            x[j] = k < s->K && deep < p->channels && r < s->R && q < s->S
                       ? F[(long long)k * s->C * s->R * s->S + inner[j]]
                       : 0.0f;
        }
        part<8>(x, scale, high, low, [&](int j) { list(facts, strays, 1, k, inner[j]); });
        const int at = i / 8 * 128 + ((chunk ^ i / 8 % 8) * 16);
        *(uint4 *)(to + at) = make_uint4(high[0], high[1], high[2], high[3]);
        *(uint4 *)(to + FILTER_BYTES / 2 + at) = make_uint4(low[0], low[1], low[2], low[3]);
    }
}

#define SHAPE                                                                                      \
    {                                                                                              \
        (int)N, (int)C, (int)H, (int)W, (int)K, (int)R, (int)S, (int)PAD, (int)STRIDE, (int)OH,    \
            (int)OW                                                                                \
    }

extern "C" __global__ void __launch_bounds__(SPLIT)
    split(const float *X, const float *F, char *packed_x, char *packed_f, int *facts,
          struct stray *strays, long long N, long long C, long long H, long long W, long long K,
          long long R, long long S, long long PAD, long long STRIDE, long long OH, long long OW)
{
    const struct shape s = SHAPE;
    const struct packing p = packing_of(&s);
    const int images =
        s.N * ((p.rows + EACH - 1) / EACH) * ((p.columns + 63) / 64) * ((p.channels + 63) / 64);
    if ((int)blockIdx.x < images)
        split_image(X, packed_x, facts, strays, &s, &p, (int)blockIdx.x);
    else
        split_filters(F, packed_f, facts, strays, &s, &p, (int)blockIdx.x - images);
    if (blockIdx.x == 0)
        for (int i = threadIdx.x; i < N + (K + 63) / 64; i += SPLIT)
            if (scale_of(facts[4 + i]) == 0)
                facts[2] = 1;
}

/* ---- the products */

static __device__ __forceinline__ void barrier_init(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

static __device__ __forceinline__ void fetch(unsigned to, const char *from, unsigned barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(to),
        "l"(from), "n"(FILTER_BYTES), "r"(barrier)
        : "memory");
}

static __device__ __forceinline__ void fetch_box(unsigned to, const struct map *map, int channel,
                                                 int column, int row, int part, unsigned barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
        "l"(map), "r"(channel), "r"(column), "r"(row), "r"(part), "r"(barrier)
        : "memory");
}

/* Rows of 128 bytes, swizzled by their addresses; groups of eight are `pitch` rows apart. */
static __device__ __forceinline__ unsigned long long describe(unsigned at, int pitch)
{
    return (unsigned long long)((at & 0x3ffff) >> 4) | 1ull << 16 |
           (unsigned long long)(8 * pitch) << 32 | 1ull << 62;
}

#define FLOATS_8(d, i)                                                                             \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define FLOATS_32(d, i) FLOATS_8(d, i), FLOATS_8(d, i + 8), FLOATS_8(d, i + 16), FLOATS_8(d, i + 24)
#define FLOATS(d)       FLOATS_32(d, 0), FLOATS_32(d, 32)

/* 64 filters by 128 outputs, 16 numbers deep; what was in d counts if `more`. */
static __device__ __forceinline__ void multiply(float (&d)[64], unsigned long long a,
                                                unsigned long long b, int more)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
                 "}, %64, %65, p, 1, 1, 0, 0;\n}"
                 : FLOATS(d)
                 : "l"(a), "l"(b), "r"(more));
}

static __device__ __forceinline__ void commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Tiles are 16 packed rows by 8 columns, counted across, then down; rows go on from one image to
 * the next, with those between them that are only there for the filter. */
struct work {
    int tiles_across, tiles, blocks; /* two tiles at a time; blocks of 64 filters */
    int tall, wide;                  /* what a tile needs of an image */
    int halos, stages; /* how many there is room for; halos are in turns of either's */
    unsigned part, filters,
        barriers; /* bytes of one part of a halo, where filters and barriers are */
    unsigned begin;
};

#define HALO(w, slot)        ((w)->begin + (slot)*2 * (w)->part)
#define HALO_FULL(w, slot)   ((w)->barriers + 16 * (slot))
#define FILTER_FULL(w, slot) ((w)->barriers + 64 + 16 * (slot))
#define EMPTY                8 /* bytes behind a full barrier */

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

static __device__ __forceinline__ void expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* The calling warp is done with what the barrier guards. */
static __device__ __forceinline__ void release(unsigned full)
{
    if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(full + EMPTY) : "memory");
}

/* Both warpgroups' halos: for each depth of each block of filters, or, of one depth, for all. */
static __device__ __forceinline__ void copy_halos(const struct map *map, const struct packing *p,
                                                  const struct work *w)
{
    struct ring ring = {0, 1}; /* nobody waits for what was never filled */
    const int times = p->depths == 1 ? 1 : w->blocks;
    for (int tile = 2 * (int)blockIdx.x; tile < w->tiles; tile += 2 * (int)gridDim.x)
        for (int i = 0; i < times * p->depths; i++) {
#pragma unroll
            for (int g = 0; g < 2; g++) {
                const unsigned full = HALO_FULL(w, ring.slot);
                barrier_wait(full + EMPTY, ring.parity);
                expect(full, 2 * w->tall * w->wide * 128);
#pragma unroll
                for (int part = 0; part < 2; part++)
                    fetch_box(HALO(w, ring.slot) + part * w->part, map, i % p->depths * 16 * DEPTH,
                              (tile + g) % w->tiles_across * 8, (tile + g) / w->tiles_across * 16,
                              part, full);
                advance(&ring, w->halos);
            }
        }
}

static __device__ __forceinline__ void copy_filters(const char *packed_f, const struct packing *p,
                                                    const struct work *w)
{
    struct ring ring = {0, 1};
    for (int tile = 2 * (int)blockIdx.x; tile < w->tiles; tile += 2 * (int)gridDim.x)
        for (int block = 0; block < w->blocks; block++)
            for (int depth = 0; depth < p->depths; depth++)
                for (int place = 0; place < p->places; place++) {
                    const unsigned full = FILTER_FULL(w, ring.slot);
                    barrier_wait(full + EMPTY, ring.parity);
                    expect(full, FILTER_BYTES);
                    fetch(w->filters + ring.slot * FILTER_BYTES,
                          packed_f + (((long long)block * p->places + place) * p->depths + depth) *
                                         FILTER_BYTES,
                          full);
                    advance(&ring, w->stages);
                }
}

/* To a thread's outputs of a row (`image`, `oh`) from column `ow`, of filters k and k + 8: what was
 * left out of X, times F, and what was left out of F, times what was not left out of X. */
static __device__ __forceinline__ void add_strays(const float *X, const float *F, const int *facts,
                                                  const struct stray *strays, float *Y,
                                                  const struct shape *s, int image, int oh, int ow,
                                                  int k)
{
    const int taps = s->C * s->R * s->S;
    const float least = LEAST / scale_of(facts[4 + image]);
    for (int e = 0; e < 4; e++) {
        const int filter = k + e / 2 * 8, column = ow + e % 2;
        float sum = 0;
        if (filter >= s->K || column >= s->OW)
            continue;
        for (int i = 0; i < facts[0]; i++) {
            const int at = strays[i].inner, r = at / s->W + s->pad - oh * s->stride,
                      q = at % s->W + s->pad - column * s->stride, c = strays[i].outer % s->C;
            if (strays[i].outer / s->C == image && r >= 0 && r < s->R && q >= 0 && q < s->S)
                sum = fmaf(X[(long long)strays[i].outer * s->H * s->W + at],
                           F[(long long)filter * taps + (c * s->R + r) * s->S + q], sum);
        }
        for (int i = MOST_STRAYS; i < MOST_STRAYS + facts[1]; i++) {
            const int at = strays[i].inner, h = oh * s->stride + at / s->S % s->R - s->pad,
                      x = column * s->stride + at % s->S - s->pad;
            if (strays[i].outer != filter || h < 0 || h >= s->H || x < 0 || x >= s->W)
                continue;
            const float v =
                X[(((long long)image * s->C + at / (s->R * s->S)) * s->H + h) * s->W + x];
            if (fabsf(v) >= least)
                sum = fmaf(v, F[(long long)filter * taps + at], sum);
        }
        if (sum != 0)
            Y[(((long long)image * s->K + filter) * s->OH + oh) * s->OW + column] += sum;
    }
}

/* A place of the filter. */
static __device__ __forceinline__ void multiply_place(float (&sum)[64], float (&others)[64],
                                                      unsigned filters, unsigned images,
                                                      unsigned part, int pitch, unsigned full,
                                                      unsigned parity, unsigned used, bool more)
{
    const unsigned long long fh = describe(filters, 8),
                             fl = describe(filters + FILTER_BYTES / 2, 8),
                             xh = describe(images, pitch), xl = describe(images + part, pitch);
    float first[64];
    barrier_wait(full, parity);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
        multiply(first, fh + 2 * k, xh + 2 * k, k > 0);
    commit();
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        multiply(others, fl + 2 * k, xh + 2 * k, k > 0 || more);
        multiply(others, fh + 2 * k, xl + 2 * k, 1);
    }
    commit();
    asm volatile("wgmma.wait_group.sync.aligned 1;" : FLOATS(first)::"memory");
    if (used)
        release(used);
#pragma unroll
    for (int i = 0; i < 64; i++)
        sum[i] += first[i];
}

static __device__ __forceinline__ void store(const float *X, const float *F, const int *facts,
                                             const struct stray *strays, float *Y,
                                             const struct shape *s, const struct packing *p,
                                             const float (&sum)[64], const float (&others)[64],
                                             int row0, int column0, int block)
{
    const int lane = threadIdx.x % 32, k0 = block * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4,
              ow = column0 + lane % 4 * 2;
    const float filters = 1.0f / scale_of(facts[4 + s->N + block]);
    const bool strayed = facts[0] + facts[1] > 0;
    const long long plane = (long long)s->OH * s->OW;
    /* A lane knows of one of the rows which it is, and tells. */
    const int image = (row0 + lane % 16) / p->rows, oh = (row0 + lane % 16) % p->rows;
    const bool there = image < s->N && oh < s->OH;
    const float unit = there ? filters / scale_of(facts[4 + image]) : 0.0f;
    const long long from = (long long)image * s->K * plane + (long long)oh * s->OW;
    float *const mine = Y + k0 * plane + ow;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const long long at = __shfl_sync(~0u, from, j);
        const float scale = __shfl_sync(~0u, unit, j);
        if (scale == 0)
            continue;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int i = 4 * j + 2 * h;
            float *y = mine + at + 8 * h * plane;
            const float2 v = make_float2(fmaf(others[i], 1.0f / 2048, sum[i]) * scale,
                                         fmaf(others[i + 1], 1.0f / 2048, sum[i + 1]) * scale);
            if (k0 + 8 * h >= s->K)
                continue;
            if (s->OW % 2 == 0 && ow < s->OW) {
                *(float2 *)y = v;
            } else {
                if (ow < s->OW)
                    y[0] = v.x;
                if (ow + 1 < s->OW)
                    y[1] = v.y;
            }
        }
        if (strayed)
            add_strays(X, F, facts, strays, Y, s, (row0 + j) / p->rows, (row0 + j) % p->rows, ow,
                       k0);
    }
}

static __device__ __forceinline__ void multiply_tiles(const float *X, const float *F,
                                                      const int *facts, const struct stray *strays,
                                                      float *Y, const struct shape *s,
                                                      const struct packing *p, const struct work *w)
{
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0) - 1,
              across = p->places / p->places_down;
    struct ring halos = {group, 0}, filters = {0, 0};
    for (int tile = 2 * (int)blockIdx.x; tile < w->tiles; tile += 2 * (int)gridDim.x)
        for (int block = 0; block < w->blocks; block++) {
            float sum[64], others[64];
            unsigned used = 0;
#pragma unroll
            for (int i = 0; i < 64; i++)
                sum[i] = 0;
            for (int depth = 0; depth < p->depths; depth++) {
                if (p->depths > 1 || block == 0)
                    barrier_wait(HALO_FULL(w, halos.slot), halos.parity);
                const unsigned halo = HALO(w, halos.slot);
                int r = 0, q = 0;
                for (int place = 0; place < p->places; place++) {
                    multiply_place(sum, others, w->filters + filters.slot * FILTER_BYTES,
                                   halo + (r * w->wide + q) * 128, w->part, w->wide,
                                   FILTER_FULL(w, filters.slot), filters.parity, used,
                                   depth + place > 0);
                    used = FILTER_FULL(w, filters.slot);
                    advance(&filters, w->stages);
                    if (++q == across)
                        q = 0, r++;
                }
                if (p->depths > 1 || block == w->blocks - 1) {
                    asm volatile("wgmma.wait_group.sync.aligned 0;" : FLOATS(others)::"memory");
                    release(HALO_FULL(w, halos.slot));
                    advance(&halos, w->halos);
                    advance(&halos, w->halos);
                }
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" : FLOATS(others)::"memory");
            release(used);
            store(X, F, facts, strays, Y, s, p, sum, others, (tile + group) / w->tiles_across * 16,
                  (tile + group) % w->tiles_across * 8, block);
        }
}

/* A number at a time, in float32. */
static __device__ __forceinline__ void plain(const float *X, const float *F, float *Y,
                                             const struct shape *s)
{
    const long long plane = (long long)s->OH * s->OW, all = s->N * s->K * plane;
    for (long long i = blockIdx.x * 384ll + threadIdx.x; i < all; i += gridDim.x * 384ll) {
        const int k = (int)(i / plane % s->K), top = (int)(i / s->OW % s->OH) * s->stride - s->pad,
                  left = (int)(i % s->OW) * s->stride - s->pad;
        const float *f = F + (long long)k * s->C * s->R * s->S,
                    *image = X + i / plane / s->K * s->C * s->H * s->W;
        float sum = 0;
        for (int c = 0; c < s->C; c++)
            for (int r = 0; r < s->R; r++)
                for (int q = 0; q < s->S; q++, f++) {
                    const int h = top + r, w = left + q;
                    if (h >= 0 && h < s->H && w >= 0 && w < s->W)
                        sum = fmaf(image[((long long)c * s->H + h) * s->W + w], *f, sum);
                }
        Y[i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
    conv2d(const __grid_constant__ struct map halo, const float *X, const float *F,
           const char *packed_f, const int *facts, const struct stray *strays, float *Y,
           long long N, long long C, long long H, long long W, long long K, long long R,
           long long S, long long PAD, long long STRIDE, long long OH, long long OW)
{
    extern __shared__ char memory[];
    const struct shape s = SHAPE;
    const struct packing p = packing_of(&s);
    struct work w;
    w.begin = ((unsigned)__cvta_generic_to_shared(memory) + 1023) / 1024 * 1024;
    w.barriers = w.begin + MOST_BYTES;
    w.tiles_across = (s.OW + 7) / 8;
    w.tiles = (s.N * p.rows + 15) / 16 * w.tiles_across;
    w.blocks = (s.K + 63) / 64;
    w.tall = 15 + p.places_down;
    w.wide = 7 + p.places / p.places_down;
    w.part = (w.tall * w.wide * 128 + 1023) / 1024 * 1024;
    w.halos = min(HALOS, (MOST_BYTES - 2 * FILTER_BYTES) / (2 * (int)w.part));
    w.stages = min(8, (MOST_BYTES - 2 * w.halos * (int)w.part) / FILTER_BYTES);
    w.filters = w.begin + 2 * w.halos * w.part;
    if (is_plain(facts) || w.halos < 2 || w.tall > 256 || w.wide > 256) {
        plain(X, F, Y, &s);
        return;
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < 12; i++) {
            barrier_init(w.barriers + 16 * i, 1);
            barrier_init(w.barriers + 16 * i + EMPTY, i < 4 ? 4 : 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x / 128 == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            copy_halos(&halo, &p, &w);
        else if (threadIdx.x == 32)
            copy_filters(packed_f, &p, &w);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply_tiles(X, F, facts, strays, Y, &s, &p, &w);
    }
}
