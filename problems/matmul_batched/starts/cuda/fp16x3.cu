/*---
workspace:
  packed_a: {shape: [BATCH, round_up(M, 128*DOWN) / 64, ceil_div(K, 64), 8192], dtype: float16}
  packed_b: {shape: [BATCH, round_up(N, 128*ACROSS) / 64, ceil_div(K, 64), 8192], dtype: float16}
  units_a: {shape: [BATCH, round_up(M, 128*DOWN) / 64, ceil_div(K, 64)], dtype: float32}
  units_b: {shape: [BATCH, round_up(N, 128*ACROSS) / 64, ceil_div(K, 64)], dtype: float32}
  strays: {shape: [2, 256, 2], dtype: int32}
  counts: {shape: [4], dtype: int32}
memset: {counts: 0}
launch:
  - entry: split
    grid: BATCH * (round_up(M, 128*DOWN) + round_up(N, 128*ACROSS)) / 64 * ceil_div(K, 64)
    block: 256
    args: [A, B, packed_a, packed_b, units_a, units_b, strays, counts, BATCH, M, N, K]
  - entry: gemm
    grid: >
      min(BATCH * ceil_div(M, 128*DOWN) * ceil_div(N, 128*ACROSS),
      sm_count / (DOWN*ACROSS) + 1000000 * (DOWN*ACROSS > 2)) * DOWN * ACROSS
    cluster: DOWN * ACROSS
    block: 384
    shared: STAGES * 65536 + 2048
    args: [A, B, packed_a, packed_b, units_a, units_b, strays, counts, C, BATCH, M, N, K]
  - entry: wide
    grid: sm_count
    block: 256
    args: [A, B, counts, C, BATCH, M, N, K]
tune:
  DOWN: [2, 1]
  ACROSS: [1, 2]
  STAGES: [3, 2]
  GROUP: [4, 2, 8, 1]
---*/
/* C[g] = A[g] B[g] in float32 by three products in float16, as matmul's fp16x3.cu, which has the
 * words for it: blocks are those of all products, one product's after the other's. */
#include <cuda_fp16.h>

#define CLUSTER     (DOWN * ACROSS)
#define BLOCK_BYTES 16384 /* 64 x 64 numbers: high, then low */
#define STAGE_BYTES (4 * BLOCK_BYTES)
#define MOST_STRAYS 256
#define LEAST       6.103515625e-05f /* 2^-14 */

struct stray {
    int row, column; /* rows of all products */
};

/* counts: strays of A and of B, and whether a block has no unit. */
static __device__ __forceinline__ bool is_wide(const int *counts)
{
    return counts[0] > MOST_STRAYS || counts[1] > MOST_STRAYS || counts[2] != 0;
}

/* Where row `row` (of 128 bytes) of a block has its `chunk`-th 16 bytes. */
static __device__ __forceinline__ int swizzled(int row, int chunk)
{
    return row * 128 + ((chunk ^ row % 8) * 16);
}

static __device__ __forceinline__ void read_8(const float *from, int left, bool aligned, float *to)
{
    if (aligned && left >= 8) {
        const float4 x = *(const float4 *)from, y = *(const float4 *)(from + 4);
        to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
        to[4] = y.x, to[5] = y.y, to[6] = y.z, to[7] = y.w;
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++)
            to[i] = i < left ? from[i] : 0.0f;
    }
}

static __device__ __forceinline__ unsigned pair(__half low, __half high)
{
    return (unsigned)__half_as_ushort(low) | (unsigned)__half_as_ushort(high) << 16;
}

/* The largest magnitude of all threads, as bits. */
static __device__ __forceinline__ unsigned largest(const float (&x)[16])
{
    __shared__ unsigned parts[8];
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < 16; i++)
        most = max(most, __float_as_uint(x[i]) & 0x7fffffff);
    most = __reduce_max_sync(~0u, most);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = most;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; i++)
        most = max(most, parts[i]);
    return most;
}

extern "C" __global__ void __launch_bounds__(256)
    split(const float *A, const float *B, char *packed_a, char *packed_b, float *units_a,
          float *units_b, struct stray *strays, int *counts, long long BATCH, long long M,
          long long N, long long K)
{
    const int deep = (int)((K + 63) / 64),
              down = (int)((M + 128 * DOWN - 1) / (128 * DOWN)) * 2 * DOWN,
              across = (int)((N + 128 * ACROSS - 1) / (128 * ACROSS)) * 2 * ACROSS;
    const bool second = blockIdx.x >= BATCH * down * deep;
    const int all = (int)(blockIdx.x - (second ? BATCH * down * deep : 0)),
              g = all / ((second ? across : down) * deep),
              number = all % ((second ? across : down) * deep);
    /* The block's place counted in blocks, `depth` along the sum. */
    const int place = second ? number % across : number / deep,
              depth = second ? number / across : number % deep;
    const int row0 = 64 * (second ? depth : place), column0 = 64 * (second ? place : depth);
    const long long rows = second ? K : M, columns = second ? N : K;
    const float *from = (second ? B : A) + g * rows * columns;
    const int chunk = threadIdx.x % 8, column = column0 + 8 * chunk;
    float x[16];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = row0 + (int)threadIdx.x / 8 + 32 * i;
        const long long left = row < rows ? columns - column : 0;
        read_8(from + (left > 0 ? row * columns + column : 0), (int)min(left, 8ll),
               columns % 4 == 0, x + 8 * i);
    }
    const unsigned most = largest(x);
    const int exponent = most == 0 ? 0 : (int)(most >> 23) - 127, fours = exponent >> 2;
    const bool none = fours < -13 || fours > 14;
    const int shift = none ? 0 : 11 - 4 * fours;
    const float up = __uint_as_float((unsigned)(127 + shift) << 23);
    const long long index = ((long long)g * (second ? across : down) + place) * deep + depth;
    char *to = (second ? packed_b : packed_a) + index * BLOCK_BYTES;
    if (threadIdx.x == 0) {
        (second ? units_b : units_a)[index] = __uint_as_float((unsigned)(127 - shift) << 23);
        if (none)
            counts[2] = 1;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = (int)threadIdx.x / 8 + 32 * i;
        __half high[8], low[8];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float y = x[8 * i + j] * up;
            if (y != 0 && fabsf(y) < LEAST && !none) {
                const int at = atomicAdd(&counts[second], 1);
                if (at < MOST_STRAYS)
                    strays[second * MOST_STRAYS + at] = {(int)(g * rows) + row0 + row, column + j};
                y = 0;
            }
            high[j] = __float2half_rn(y);
            low[j] = __float2half_rn((y - __half2float(high[j])) * 2048.0f);
        }
        *(uint4 *)(to + swizzled(row, chunk)) =
            make_uint4(pair(high[0], high[1]), pair(high[2], high[3]), pair(high[4], high[5]),
                       pair(high[6], high[7]));
        *(uint4 *)(to + BLOCK_BYTES / 2 + swizzled(row, chunk)) = make_uint4(
            pair(low[0], low[1]), pair(low[2], low[3]), pair(low[4], low[5]), pair(low[6], low[7]));
    }
}

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

/* A block, to the same place of every block of the cluster that `mask` has. */
static __device__ __forceinline__ void fetch(unsigned to, const char *from, unsigned barrier,
                                             unsigned mask, bool alone)
{
    if (alone)
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
            "%2, [%3];" ::"r"(to),
            "l"(from), "n"(BLOCK_BYTES), "r"(barrier)
            : "memory");
    else
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to),
                     "l"(from), "n"(BLOCK_BYTES), "r"(barrier), "h"((short)mask)
                     : "memory");
}

static __device__ __forceinline__ int cluster_rank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return (int)rank;
}

/* Releases nothing, which would take 0.6 us: what others read here a fence has released. */
static __device__ __forceinline__ void cluster_meet()
{
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/* 128-byte swizzle; both offsets in bytes. */
static __device__ __forceinline__ unsigned long long describe(unsigned at, unsigned lead)
{
    return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(lead >> 4) << 16 |
           64ull << 32 | 1ull << 62;
}

#define FLOATS_8(d, i)                                                                             \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define FLOATS_32(d, i) FLOATS_8(d, i), FLOATS_8(d, i + 8), FLOATS_8(d, i + 16), FLOATS_8(d, i + 24)
#define FLOATS(d)       FLOATS_32(d, 0), FLOATS_32(d, 32)

/* 64 rows of A by 128 columns of B, 16 numbers deep; what was in d counts if `more`. */
static __device__ __forceinline__ void multiply(float (&d)[64], unsigned long long a,
                                                unsigned long long b, int more)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
                 "}, %64, %65, p, 1, 1, 0, 1;\n}"
                 : FLOATS(d)
                 : "l"(a), "l"(b), "r"(more));
}

static __device__ __forceinline__ void commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* The cluster's of tile `number` of C, in groups of GROUP rows; counted in blocks of 64. Says whose
 * tile it is. */
static __device__ __forceinline__ int tile_at(int number, int down, int across, int *m, int *n)
{
    const int g = number / (down * across);
    number %= down * across;
    const int first = number / (GROUP * across) * GROUP, within = number % (GROUP * across);
    const int height = min(down - first, GROUP), rank = cluster_rank();
    *m = 2 * ((first + within % height) * DOWN + rank / ACROSS);
    *n = 2 * (within / height * ACROSS + rank % ACROSS);
    return g;
}

struct place {
    unsigned stages, barriers;
    int batch, down, across, deep; /* products, tiles of a cluster, blocks of the sum */
};

#define TILES(number, p)                                                                           \
    int number = (int)blockIdx.x / CLUSTER;                                                        \
    number < (p).batch *(p).down *(p).across;                                                      \
    number += (int)gridDim.x / CLUSTER

static __device__ __forceinline__ void copy_tiles(const char *packed_a, const char *packed_b,
                                                  struct place p)
{
    const int rank = cluster_rank(), i = rank / ACROSS, j = rank % ACROSS;
    const unsigned beside = ((1u << ACROSS) - 1) << i * ACROSS,
                   below = (DOWN == 2 ? 1u | 1u << ACROSS : 1u) << j;
    int slot = 0;
    unsigned parity = 1; /* nobody waits for a stage that was never filled */
    for (TILES(number, p)) {
        int m, n;
        const int g = tile_at(number, p.down, p.across, &m, &n);
        m += g * p.down * 2 * DOWN;
        n += g * p.across * 2 * ACROSS;
        for (int step = 0; step < p.deep; step++) {
            const unsigned full = p.barriers + 16 * slot, stage = p.stages + slot * STAGE_BYTES;
            barrier_wait(full + 8, parity);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                         "r"(STAGE_BYTES)
                         : "memory");
#pragma unroll
            for (int h = 0; h < 2; h++) {
                if (h % ACROSS == j)
                    fetch(stage + h * BLOCK_BYTES,
                          packed_a + ((long long)(m + h) * p.deep + step) * BLOCK_BYTES, full,
                          beside, ACROSS == 1);
                if (h % DOWN == i)
                    fetch(stage + (2 + h) * BLOCK_BYTES,
                          packed_b + ((long long)(n + h) * p.deep + step) * BLOCK_BYTES, full,
                          below, DOWN == 1);
            }
            if (++slot == STAGES) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
    for (int s = 0; CLUSTER > 1 && s < STAGES; s++) { /* until nobody arrives here any more */
        barrier_wait(p.barriers + 16 * slot + 8, parity);
        if (++slot == STAGES) {
            slot = 0;
            parity ^= 1;
        }
    }
}

/* To a thread's numbers of C, from (m, n) on: what was left out of A, times B, and what was left
 * out of B, times what was not left out of A. */
static __device__ __forceinline__ void add_strays(const float *A, const float *B, float *C,
                                                  const float *units_a, const struct stray *strays,
                                                  const int *counts, long long g, long long m,
                                                  long long n, long long M, long long N,
                                                  long long K)
{
    A += g * M * K;
    B += g * K * N;
    C += g * M * N;
    for (int i = 0; i < counts[0]; i++) {
        const long long row = strays[i].row - g * M, k = strays[i].column;
        if (row < M && (row == m || row == m + 8))
            for (int j = 0; j < 32; j++)
                if (n + j / 2 * 8 + j % 2 < N)
                    C[row * N + n + j / 2 * 8 + j % 2] +=
                        A[row * K + k] * B[k * N + n + j / 2 * 8 + j % 2];
    }
    for (int i = MOST_STRAYS; i < MOST_STRAYS + counts[1]; i++) {
        const long long k = strays[i].row - g * K, column = strays[i].column, right = column - n;
        if (k >= 0 && k < K && right >= 0 && right < 128 && right % 8 < 2)
            for (long long row = m; row < min(M, m + 16); row += 8) {
                const float a = A[row * K + k];
                if (fabsf(a) >= LEAST * units_a[row / 64 * ((K + 63) / 64) + k / 64])
                    C[row * N + column] += a * B[k * N + column];
            }
    }
}

struct factors {
    float left, right; /* of the first 64 columns, of the others */
};

static __device__ __forceinline__ void add(float (&sum)[64], const float (&d)[64],
                                           struct factors by, float also)
{
    by.left *= also;
    by.right *= also;
#pragma unroll
    for (int i = 0; i < 64; i++)
        sum[i] = fmaf(d[i], i < 32 ? by.left : by.right, sum[i]);
}

static __device__ __forceinline__ void multiply_tile(float (&sum)[64], const float *units_a,
                                                     const float *units_b, struct place p,
                                                     int *slot, unsigned *parity, int group)
{
    const int lane = threadIdx.x % 32;
    float first[64], others[64];
    /* Of this step, of the next, and, not looked at yet, of the one after that. */
    struct factors now, then = {units_a[0] * units_b[0], units_a[0] * units_b[p.deep]};
    float a, left, right;
    auto ask = [&](int step) {
        step = min(step, p.deep - 1);
        a = units_a[step];
        left = units_b[step];
        right = units_b[p.deep + step];
    };
    ask(1);
    int used = -1;
    bool more = false; /* whether the others' sum goes on */
    auto release = [&]() {
        if (lane < CLUSTER)
            asm volatile("{\n.reg .b32 there;\n"
                         "mapa.shared::cluster.u32 there, %0, %1;\n"
                         "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(p.barriers +
                                                                                    16 * used + 8),
                         "r"(lane)
                         : "memory");
    };
#pragma unroll
    for (int i = 0; i < 64; i++)
        sum[i] = others[i] = 0;
    for (int step = 0; step < p.deep; step++) {
        now = then;
        then = {a * left, a * right};
        ask(step + 2);
        const unsigned stage = p.stages + *slot * STAGE_BYTES;
        const unsigned long long ah = describe(stage + BLOCK_BYTES * group, 16),
                                 bh = describe(stage + 2 * BLOCK_BYTES, BLOCK_BYTES);
        const unsigned long long low = BLOCK_BYTES / 2 / 16;
        barrier_wait(p.barriers + 16 * *slot, *parity);
        fence();
#pragma unroll
        for (int k = 0; k < 4; k++)
            multiply(first, ah + 2 * k, bh + 128 * k, k > 0);
        commit();
        if (used >= 0) {
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            release();
        }
        used = *slot;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            multiply(others, ah + low + 2 * k, bh + 128 * k, k > 0 || more);
            multiply(others, ah + 2 * k, bh + low + 128 * k, 1);
        }
        commit();
        asm volatile("wgmma.wait_group.sync.aligned 1;" : FLOATS(first)::"memory");
        add(sum, first, now, 1.0f);
        if (++*slot == STAGES) {
            *slot = 0;
            *parity ^= 1;
        }
        more = then.left == now.left && then.right == now.right;
        if (!more) {
            asm volatile("wgmma.wait_group.sync.aligned 0;" : FLOATS(others)::"memory");
            add(sum, others, now, 1.0f / 2048);
        }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : FLOATS(others)::"memory");
    release();
    if (more)
        add(sum, others, now, 1.0f / 2048);
}

extern "C" __global__ void __launch_bounds__(384, 1)
    gemm(const float *A, const float *B, const char *packed_a, const char *packed_b,
         const float *units_a, const float *units_b, const struct stray *strays, const int *counts,
         float *C, long long BATCH, long long M, long long N, long long K)
{
    extern __shared__ char memory[];
    if (is_wide(counts))
        return;
    struct place p;
    p.stages = ((unsigned)__cvta_generic_to_shared(memory) + 1023) / 1024 * 1024;
    p.barriers = p.stages + STAGES * STAGE_BYTES;
    p.batch = (int)BATCH;
    p.down = (int)((M + 128 * DOWN - 1) / (128 * DOWN));
    p.across = (int)((N + 128 * ACROSS - 1) / (128 * ACROSS));
    p.deep = (int)((K + 63) / 64);
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(p.barriers + 16 * s, 1);
            barrier_init(p.barriers + 16 * s + 8, 8 * CLUSTER);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (CLUSTER == 1)
        __syncthreads();
    else
        cluster_meet();
    if (threadIdx.x / 128 == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            copy_tiles(packed_a, packed_b, p);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4,
                  group = __shfl_sync(~0u, threadIdx.x / 128, 0) - 1;
        const bool strayed = counts[0] + counts[1] > 0;
        int slot = 0;
        unsigned parity = 0;
        for (TILES(number, p)) {
            float sum[64];
            int tile_m, tile_n;
            const long long g = tile_at(number, p.down, p.across, &tile_m, &tile_n);
            const float *mine = units_a + g * p.down * 2 * DOWN * p.deep;
            multiply_tile(sum, mine + (tile_m + group) * p.deep,
                          units_b + (g * p.across * 2 * ACROSS + tile_n) * p.deep, p, &slot,
                          &parity, group);
            const long long m0 = (tile_m + group) * 64ll + 16 * warp + lane / 4,
                            n0 = tile_n * 64ll + lane % 4 * 2;
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int j = 0; j < 16; j++) {
                    const long long m = m0 + 8 * h, n = n0 + 8 * j;
                    float *c = C + (g * M + m) * N + n;
                    const float x = sum[4 * j + 2 * h], y = sum[4 * j + 2 * h + 1];
                    if (N % 2 == 0) {
                        if (m < M && n < N)
                            *(float2 *)c = make_float2(x, y);
                    } else {
                        if (m < M && n < N)
                            c[0] = x;
                        if (m < M && n + 1 < N)
                            c[1] = y;
                    }
                }
            if (strayed)
                add_strays(A, B, C, mine, strays, counts, g, m0, n0, M, N, K);
        }
    }
}

/* ---- by three tf32 products, for numbers that float16 cannot hold */

#define WIDE_M  128
#define WIDE_N  64
#define WIDE_K  16
#define PITCH_A (WIDE_K + 8)
#define PITCH_B (WIDE_N + 4)

/* What the unit ignores of `low` is below the last bit of x. */
static __device__ __forceinline__ void split_tf32(float x, unsigned *high, unsigned *low)
{
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(*high) : "f"(x));
    *low = __float_as_uint(x - __uint_as_float(*high));
}

/* d += a b for a tile of 16 x 8 by 8 numbers. */
static __device__ __forceinline__ void multiply_tf32(float (&d)[4], const unsigned (&a)[4],
                                                     const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* A warp's 32 x 32 of a step of WIDE_K. */
static __device__ __forceinline__ void multiply_wide(const float *sa, const float *sb,
                                                     float (&sum)[2][4][4])
{
#pragma unroll
    for (int k = 0; k < WIDE_K; k += 8) {
        unsigned ah[2][4], al[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                split_tf32(sa[(16 * i + e % 2 * 8) * PITCH_A + k + e / 2 * 4], &ah[i][e],
                           &al[i][e]);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            unsigned bh[2], bl[2];
#pragma unroll
            for (int e = 0; e < 2; e++)
                split_tf32(sb[(k + 4 * e) * PITCH_B + 8 * j], &bh[e], &bl[e]);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float d[4] = {};
                multiply_tf32(d, al[i], bh);
                multiply_tf32(d, ah[i], bl);
                multiply_tf32(d, ah[i], bh);
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sum[i][j][e] += d[e];
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
    wide(const float *A, const float *B, const int *counts, float *C, long long BATCH, long long M,
         long long N, long long K)
{
    __shared__ float sa[2][WIDE_M * PITCH_A], sb[2][WIDE_K * PITCH_B];
    if (!is_wide(counts))
        return;
    const int tid = threadIdx.x, lane = tid % 32, m = tid / 32 % 4 * 32 + lane / 4,
              n = tid / 128 * 32;
    const long long across = (N + WIDE_N - 1) / WIDE_N, count = (M + WIDE_M - 1) / WIDE_M * across;
    for (long long number = blockIdx.x; number < BATCH * count; number += gridDim.x) {
        const long long g = number / count, tile = number % count;
        const long long m0 = tile / across * WIDE_M, n0 = tile % across * WIDE_N;
        float sum[2][4][4] = {}, a[8], b[4];
        auto read = [&](long long k0) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const long long row = m0 + tid / 16 + 16 * i, k = k0 + tid % 16;
                a[i] = row < M && k < K ? A[(g * M + row) * K + k] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const long long k = k0 + tid / 64 + 4 * i, column = n0 + tid % 64;
                b[i] = k < K && column < N ? B[(g * K + k) * N + column] : 0.0f;
            }
        };
        auto keep = [&](int stage) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                sa[stage][(tid / 16 + 16 * i) * PITCH_A + tid % 16] = a[i];
#pragma unroll
            for (int i = 0; i < 4; i++)
                sb[stage][(tid / 64 + 4 * i) * PITCH_B + tid % 64] = b[i];
        };
        read(0);
        __syncthreads(); /* the tile before this one is done */
        keep(0);
        int stage = 0;
        for (long long k0 = 0; k0 < K; k0 += WIDE_K, stage ^= 1) {
            __syncthreads();
            if (k0 + WIDE_K < K)
                read(k0 + WIDE_K);
            multiply_wide(sa[stage] + m * PITCH_A + lane % 4,
                          sb[stage] + lane % 4 * PITCH_B + n + lane / 4, sum);
            if (k0 + WIDE_K < K)
                keep(stage ^ 1);
        }
#pragma unroll
        for (int i = 0; i < 32; i++) {
            const long long row = m0 + m + i / 16 * 16 + i / 2 % 2 * 8,
                            column = n0 + n + i / 4 % 4 * 8 + lane % 4 * 2 + i % 2;
            if (row < M && column < N)
                C[(g * M + row) * N + column] = sum[i / 16][i / 4 % 4][i % 4];
        }
    }
}
