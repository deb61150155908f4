/*---
launch:
  - entry: attention
    grid: ceil_div(L, 128 * CLUSTER) * CLUSTER * H
    cluster: CLUSTER
    block: 384
    shared: 133376 + 32768 * STAGES
    args: [tile_q, tile_k, tile_v, Q, K, V, O, L, D]
tma:
  tile_q: {tensor: Q, shape: [H, L, D], box: [1, 128, 64], swizzle: 128B, l2: 256B}
  tile_k: {tensor: K, shape: [H, L, D], box: [1, 64, 64], swizzle: 128B, l2: 256B}
  tile_v: {tensor: V, shape: [H, L, D], box: [1, 64, 64], swizzle: 128B, l2: 256B}
tune:
  CLUSTER: [2, 4, 1]
  STAGES: [3, 2]
  where: L <= 512
---*/
/* Attention for wide heads of at most 512 keys, by wgmma, fed by the copy engine. Results of a wide
 * head have no room in registers beside scores. So all weights of 128 queries are made first:
 * scores of 256 keys in registers, summed over 64 columns of Q and K at a time, become weights in
 * shared memory, relative to the largest score so far. The results are their product with the
 * values, 256 columns at a time; what the first 256 keys brought is scaled where the second ones
 * had a larger score. Each of two warpgroups has 64 queries, a third one copies. Blocks of a
 * cluster have the same head, and each copies its share of the keys and values for all. Rows that
 * are not aligned to 16 bytes and more keys go by plain loops. */
#include <cuda_fp16.h>

#define LEAST      -3.402823466e38f
#define MOST_KEYS  512
#define QUERIES    4 /* slots of 128 queries' 64 columns: where the second weights will be */
#define SLOT_BYTES 32768

struct alignas(64) map {
    char bytes[128];
};

/* An instruction's operands %0 to %127, and what they are. */
#define TEN(t)   "," t "0," t "1," t "2," t "3," t "4," t "5," t "6," t "7," t "8," t "9"
#define EIGHT(t) "," t "0," t "1," t "2," t "3," t "4," t "5," t "6," t "7"
#define LIST_60  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9" TEN("%1") TEN("%2") TEN("%3") TEN("%4") TEN("%5")
#define LIST_128 LIST_60 TEN("%6") TEN("%7") TEN("%8") TEN("%9") TEN("%10") TEN("%11") EIGHT("%12")
#define FLOATS_8(d, i)                                                                             \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define FLOATS_16(d, i) FLOATS_8(d, i), FLOATS_8(d, i + 8)
#define FLOATS_32(d, i) FLOATS_16(d, i), FLOATS_16(d, i + 16)
#define FLOATS_64(d, i) FLOATS_32(d, i), FLOATS_32(d, i + 32)

#define FLOATS_128(d) FLOATS_64(d, 0), FLOATS_64(d, 64)

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

static __device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* Each warp says once that it is done with what a barrier of its block guards, */
static __device__ __forceinline__ void release(unsigned barrier)
{
    if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* or to all blocks of the cluster. */
static __device__ __forceinline__ void release_for_all(unsigned barrier)
{
    if (threadIdx.x % 32 < CLUSTER)
        asm volatile("{\n.reg .b32 there;\n"
                     "mapa.shared::cluster.u32 there, %0, %1;\n"
                     "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
                     "r"(threadIdx.x % 32)
                     : "memory");
}

static __device__ __forceinline__ void fetch(unsigned to, const struct map *map, int column,
                                             int row, int head, unsigned barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%2, %3, %4}], [%5];" ::"r"(to),
        "l"(map), "r"(column), "r"(row), "r"(head), "r"(barrier)
        : "memory");
}

/* To the same place of every block of the cluster. */
static __device__ __forceinline__ void fetch_for_all(unsigned to, const struct map *map, int column,
                                                     int row, int head, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(head), "r"(barrier),
                 "h"((short)((1 << CLUSTER) - 1))
                 : "memory");
}

static __device__ __forceinline__ int cluster_rank()
{
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/* 128-byte swizzle, groups of eight rows 1024 bytes apart; panels of 64 columns 8192. */
static __device__ __forceinline__ unsigned long long describe(unsigned at)
{
    return (unsigned long long)((at & 0x3ffff) >> 4) | 512ull << 16 | 64ull << 32 | 1ull << 62;
}

/* Scores of 64 queries with 256 keys, over 64 columns. */
static __device__ __forceinline__ void add_scores(float (&s)[128], unsigned queries, unsigned keys)
{
    const unsigned long long q = describe(queries), k = describe(keys);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int d = 0; d < 4; d++)
        asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" LIST_128
                     "}, %128, %129, "
                     "1, 1, 1, 0, 0;"
                     : FLOATS_128(s)
                     : "l"(q + 2 * d), "l"(k + 2 * d));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* 64 weights of 64 queries by 256 columns of values, which are contiguous. */
static __device__ __forceinline__ void add_results(float (&o)[128], unsigned weights,
                                                   unsigned values)
{
    const unsigned long long w = describe(weights), v = describe(values);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; k++)
        asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" LIST_128
                     "}, %128, %129, "
                     "1, 1, 1, 0, 1;"
                     : FLOATS_128(o)
                     : "l"(w + 2 * k), "l"(v + 128 * k));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* For all products but those that were asked for last. */
static __device__ __forceinline__ void wait_before(float (&d)[128])
{
    asm volatile("wgmma.wait_group.sync.aligned 1;" : FLOATS_128(d)::"memory");
}

static __device__ __forceinline__ void wait_all(float (&d)[128])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" : FLOATS_128(d)::"memory");
}

static __device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ unsigned pair(float low, float high)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

/* Of a thread's two rows of 64: element 4 j + 2 h + e is of row h, column 8 j + 2 (lane % 4) + e.
 */
struct rows {
    float most[2], sum[2], fade[2]; /* what weights of the first 256 keys are multiplied by */
};

/* Only `keys` of the tile exist. */
static __device__ __forceinline__ void mask(float (&s)[128], int keys)
{
    const int left = keys - threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < 128; i++)
        s[i] = i / 4 * 8 + i % 2 < left ? s[i] : LEAST;
}

static __device__ __forceinline__ void take_largest(const float (&s)[128], struct rows *rows,
                                                    float scale)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float top = rows->most[h];
#pragma unroll
        for (int i = 0; i < 128; i += 4)
            top = fmaxf(top, fmaxf(s[i + 2 * h], s[i + 2 * h + 1]));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
        rows->fade[h] = power((rows->most[h] - top) * scale);
        rows->sum[h] *= rows->fade[h];
        rows->most[h] = top;
    }
}

/* Scores become weights: in shared memory as the tensor cores read them, 64 keys in 8192 bytes,
 * panels of the other warpgroup between. */
static __device__ __forceinline__ void weigh(const float (&s)[128], unsigned to, struct rows *rows,
                                             float scale)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    const float less[2] = {rows->most[0] * scale, rows->most[1] * scale};
#pragma unroll
    for (int j = 0; j < 32; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float low = power(fmaf(s[4 * j + 2 * h], scale, -less[h])),
                        high = power(fmaf(s[4 * j + 2 * h + 1], scale, -less[h]));
            const unsigned at = to + j / 8 * 16384 + (row + 8 * h) * 128 +
                                (j % 8 * 16 ^ lane / 4 * 16) + lane % 4 * 4;
            rows->sum[h] += low + high;
            asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(pair(low, high)) : "memory");
        }
}

/* Neighbours are a row's columns 8 apart of four lanes: each lane ends with 8 columns. */
static __device__ __forceinline__ void transpose(unsigned (&r)[4])
{
    const bool odd = threadIdx.x % 2, high = threadIdx.x / 2 % 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const unsigned got = __shfl_xor_sync(~0u, odd ? r[i] : r[i + 1], 1);
        r[i] = odd ? got : r[i];
        r[i + 1] = odd ? r[i + 1] : got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const unsigned got = __shfl_xor_sync(~0u, high ? r[i] : r[i + 2], 2);
        r[i] = high ? got : r[i];
        r[i + 2] = high ? r[i + 2] : got;
    }
}

/* 256 columns of the warp's 16 rows, of which `rows` exist, and of D columns `columns`. */
static __device__ __forceinline__ void store(__half *to, const float (&o)[128],
                                             const struct rows *sums, long long rows, int columns,
                                             int D)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float over = 1.0f / sums->sum[h];
        const int row = lane / 4 + 8 * h;
#pragma unroll
        for (int c = 0; c < 8; c++) {
            unsigned r[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                r[j] = pair(o[16 * c + 4 * j + 2 * h] * over, o[16 * c + 4 * j + 2 * h + 1] * over);
            transpose(r);
            const int column = 32 * c + lane % 4 * 8;
            if (row < rows && column < columns)
                *(uint4 *)(to + (long long)row * D + column) = make_uint4(r[0], r[1], r[2], r[3]);
        }
    }
}

struct work {
    unsigned weights, queries, slots, barriers; /* places in shared memory */
    int head, row, L, D;
};

#define QUERIES_FULL(w, i) ((w)->barriers + 16 * (i))
#define SLOT_FULL(w, i)    ((w)->barriers + 16 * (QUERIES + (i)))
#define EMPTY              8 /* bytes behind a full barrier */

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

/* Four boxes of 64 rows and 64 columns: keys below each other, values beside each other. */
static __device__ __forceinline__ void copy_boxes(const struct map *map, const struct work *w,
                                                  struct ring *ring, int column, int row,
                                                  int across)
{
    const unsigned full = SLOT_FULL(w, ring->slot), to = w->slots + ring->slot * SLOT_BYTES;
    barrier_wait(full + EMPTY, ring->parity);
    barrier_expect(full, SLOT_BYTES);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int x = column + across * 64 * i, y = row + (1 - across) * 64 * i;
        if (CLUSTER == 1)
            fetch(to + 8192 * i, map, x, y, w->head, full);
        else if (i % CLUSTER == cluster_rank())
            fetch_for_all(to + 8192 * i, map, x, y, w->head, full);
    }
    advance(ring, STAGES);
}

static __device__ __forceinline__ void copy(const struct map *map_q, const struct map *map_k,
                                            const struct map *map_v, const struct work *w)
{
    struct ring queries = {0, 1}, slots = {0, 1}; /* nobody waits for what was never filled */
    for (int key = 0; key < w->L; key += 256)
        for (int column = 0; column < w->D; column += 64) {
            const unsigned full = QUERIES_FULL(w, queries.slot);
            barrier_wait(full + EMPTY, queries.parity);
            barrier_expect(full, 16384);
            fetch(w->queries + 16384 * queries.slot, map_q, column, w->row, w->head, full);
            advance(&queries, QUERIES);
            copy_boxes(map_k, w, &slots, column, key, 0);
        }
    for (int column = 0; column < w->D; column += 256)
        for (int key = 0; key < w->L; key += 64)
            copy_boxes(map_v, w, &slots, column, key, 1);
}

static __device__ __forceinline__ void make_weights(const struct work *w, int group, float scale,
                                                    struct rows *rows, struct ring *slots)
{
    struct ring queries = {0, 0};
    for (int key = 0; key < w->L; key += 256) {
        float s[128] = {};
        unsigned used_queries = 0, used_slot = 0;
        for (int column = 0; column < w->D; column += 64) {
            const unsigned queries_full = QUERIES_FULL(w, queries.slot),
                           slot_full = SLOT_FULL(w, slots->slot);
            barrier_wait(queries_full, queries.parity);
            barrier_wait(slot_full, slots->parity);
            add_scores(s, w->queries + 16384 * queries.slot + 8192 * group,
                       w->slots + slots->slot * SLOT_BYTES);
            wait_before(s);
            if (column > 0) {
                release(used_queries + EMPTY);
                release_for_all(used_slot + EMPTY);
            }
            used_queries = queries_full;
            used_slot = slot_full;
            advance(&queries, QUERIES);
            advance(slots, STAGES);
        }
        wait_all(s);
        release(used_queries + EMPTY);
        release_for_all(used_slot + EMPTY);
        if (w->L - key < 256)
            mask(s, w->L - key);
        take_largest(s, rows, scale);
        if (key > 0) /* where the queries of both warpgroups were */
            asm volatile("bar.sync 1, 256;" ::: "memory");
        weigh(s, w->weights + key * 256 + 8192 * group, rows, scale);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        rows->sum[h] += __shfl_xor_sync(~0u, rows->sum[h], 1);
        rows->sum[h] += __shfl_xor_sync(~0u, rows->sum[h], 2);
    }
    asm volatile("fence.proxy.async.shared::cta;\nbar.sync %0, 128;" ::"r"(2 + group) : "memory");
}

static __device__ __forceinline__ void attend(__half *O, const struct work *w, float scale)
{
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0) - 1, warp = threadIdx.x / 32 % 4;
    const long long row = w->row + 64 * group + 16 * warp;
    struct rows rows = {{LEAST, LEAST}};
    struct ring slots = {0, 0};
    make_weights(w, group, scale, &rows, &slots);
    for (int column = 0; column < w->D; column += 256) {
        float o[128] = {};
        unsigned used = 0;
        for (int key = 0; key < w->L; key += 64) {
            const unsigned full = SLOT_FULL(w, slots.slot);
            if (key == 256) {
                wait_all(o);
#pragma unroll
                for (int i = 0; i < 128; i++)
                    o[i] *= rows.fade[i / 2 % 2];
            }
            barrier_wait(full, slots.parity);
            add_results(o, w->weights + key * 256 + 8192 * group,
                        w->slots + slots.slot * SLOT_BYTES);
            wait_before(o);
            if (key > 0)
                release_for_all(used + EMPTY);
            used = full;
            advance(&slots, STAGES);
        }
        wait_all(o);
        release_for_all(used + EMPTY);
        store(O + ((long long)w->head * w->L + row) * w->D + column, o, &rows, w->L - row,
              w->D - column, w->D);
    }
}

/* A warp a query: scores of 32 keys at a time, 128 columns of the result in a pass. */
static __device__ void plain(const __half *Q, const __half *K, const __half *V, __half *O,
                             long long H, long long L, long long D, float scale)
{
    const int lane = threadIdx.x % 32;
    const long long warps = (long long)gridDim.x * (blockDim.x / 32);
    for (long long row = (long long)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; row < H * L;
         row += warps)
        for (long long d0 = 0; d0 < D; d0 += 128) {
            const __half *q = Q + row * D, *k = K + row / L * L * D, *v = V + row / L * L * D;
            float most = LEAST, sum = 0, o[4] = {};
            for (long long j0 = 0; j0 < L; j0 += 32) {
                const long long j = min(j0 + lane, L - 1);
                float score = 0;
                for (long long d = 0; d < D; d++)
                    score = fmaf(__half2float(q[d]), __half2float(k[j * D + d]), score);
                if (j0 + lane >= L)
                    score = LEAST;
                float top = score;
                for (int x = 1; x < 32; x *= 2)
                    top = fmaxf(top, __shfl_xor_sync(~0u, top, x));
                top = fmaxf(top, most);
                const float fade = power((most - top) * scale), mine = power((score - top) * scale);
                most = top;
                sum = sum * fade + mine;
                for (int i = 0; i < 4; i++)
                    o[i] *= fade;
                for (int x = 0; x < 32 && j0 + x < L; x++) {
                    const float weight = __shfl_sync(~0u, mine, x);
                    for (int i = 0; i < 4; i++)
                        if (d0 + 32 * i + lane < D)
                            o[i] = fmaf(weight, __half2float(v[(j0 + x) * D + d0 + 32 * i + lane]),
                                        o[i]);
                }
            }
            for (int x = 1; x < 32; x *= 2)
                sum += __shfl_xor_sync(~0u, sum, x);
            for (int i = 0; i < 4; i++)
                if (d0 + 32 * i + lane < D)
                    O[row * D + d0 + 32 * i + lane] = __float2half_rn(o[i] / sum);
        }
}

extern "C" __global__ void __launch_bounds__(384, 1)
    attention(const __grid_constant__ struct map tile_q, const __grid_constant__ struct map tile_k,
              const __grid_constant__ struct map tile_v, const __half *Q, const __half *K,
              const __half *V, __half *O, long long L, long long D)
{
    extern __shared__ char memory[];
    const float scale = 1.44269504f / sqrtf((float)D);
    const int clusters = (int)((L + 128 * CLUSTER - 1) / (128 * CLUSTER)),
              number = blockIdx.x / CLUSTER;
    if (D % 8 != 0 || L > MOST_KEYS) {
        plain(Q, K, V, O, gridDim.x / (clusters * CLUSTER), L, D, scale);
        return;
    }
    struct work w;
    w.weights = ((unsigned)__cvta_generic_to_shared(memory) + 1023) / 1024 * 1024;
    w.queries = w.weights + 65536;
    w.slots = w.weights + 131072;
    w.barriers = w.slots + STAGES * SLOT_BYTES;
    w.head = number / clusters;
    w.row = (number % clusters * CLUSTER + cluster_rank()) * 128;
    w.L = (int)L;
    w.D = (int)D;
    if (threadIdx.x == 0) {
        for (int i = 0; i < QUERIES + STAGES; i++) {
            barrier_init(w.barriers + 16 * i, 1);
            barrier_init(w.barriers + 16 * i + EMPTY, i < QUERIES ? 8 : 8 * CLUSTER);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_sync();
    if (threadIdx.x / 128 == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            copy(&tile_q, &tile_k, &tile_v, &w);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        attend(O, &w, scale);
    }
    cluster_sync(); /* others may still write here */
}
