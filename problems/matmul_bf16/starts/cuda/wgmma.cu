/*---
launch:
  - entry: gemm
    grid: >
      min(ceil_div(M, ROWS * CLUSTER) * CLUSTER * ceil_div(N, BN * BESIDE) * BESIDE * SPLIT,
      sm_count * BLOCKS / (CLUSTER * BESIDE) * CLUSTER * BESIDE + (SPLIT > 1) * 1000000000)
    cluster: CLUSTER * BESIDE * SPLIT
    block: 2 * ROWS + 32
    shared: STAGES * 128 * (ROWS + BN) + 2048
    args: [tile_a, tile_b, A, B, C, M, N, K]
tma:
  tile_a: {tensor: A, box: [ROWS / BESIDE, 64], swizzle: 128B, l2: 256B}
  tile_b: {tensor: B, box: [min(64, BN / CLUSTER), 64], swizzle: 128B, l2: 256B}
tune:
  ROWS: [128, 64, 192, 256]
  BN: [256, 128, 64, 192]
  STAGES: [4, 3, 6, 8, 12]
  GROUP: [8, 4, 16, 1]
  CLUSTER: [2, 1, 4]
  BESIDE: [1, 2, 4]
  SPLIT: [1, 2, 4, 8]
  BLOCKS: [1, 2]
  where: >
    N % 8 == 0 && K % 8 == 0 && CLUSTER * BESIDE <= 4 && CLUSTER * BESIDE * SPLIT <= 8
    && ROWS * BN <= 36864 && (BN != 192 || ROWS == 192 && STAGES == 4 && SPLIT == 2
    && ceil_div(M, ROWS) * ceil_div(N, BN) * SPLIT <= sm_count
    && ceil_div(M, ROWS) * ceil_div(N, BN) * SPLIT * 3 >= sm_count * 2)
    && SPLIT * 8 <= BN && STAGES * 128 * (ROWS + BN) + 2048 <= 232448
    && BLOCKS * (STAGES + 2) * 128 * (ROWS + BN) > 200000
    && (SPLIT == 1 || SPLIT * 256 <= K
    && ceil_div(M, ROWS) * ceil_div(N, BN) * SPLIT <= 2 * sm_count)
    && (CLUSTER * BESIDE < 4 || BLOCKS == 1 && STAGES > 3 && ROWS <= 192 && BN <= 128
    && (CLUSTER != BESIDE || ROWS == 64 && BN == 128)
    && round_up(M, ROWS * CLUSTER) * 4 <= round_up(M, ROWS) * 5
    && round_up(N, BN * BESIDE) * 4 <= round_up(N, BN) * 5
    && ceil_div(M, ROWS * CLUSTER) * ceil_div(N, BN * BESIDE) * SPLIT * 44 <= sm_count * 10
    && ceil_div(M, ROWS * CLUSTER) * ceil_div(N, BN * BESIDE) * SPLIT * 10 >= sm_count)
    && (GROUP == 8 || ceil_div(M, ROWS) * ceil_div(N, BN) > 2 * sm_count)
    && (BLOCKS == 1 || SPLIT == 1 && ceil_div(M, ROWS) * ceil_div(N, BN) > sm_count
    && ROWS * BN <= 16384 && BLOCKS * (STAGES * 128 * (ROWS + BN) + 3072) <= 233472)
---*/
/* wgmma fed by the copy engine: one to four warpgroups multiply 64 rows each, and a warp copies
 * tiles of ROWS x 64 of A and 64 x BN of B into STAGES stages. A stage's `full` barrier counts the
 * bytes that arrive, its `empty` barrier the warps that are done with it. Blocks stay, and take one
 * tile of C after another: the next one's copies run while results are stored. The blocks of a
 * cluster have tiles of C below one another and copy a share of B each, for all, or with BESIDE
 * tiles beside one another and shares of A, or both, two by two. With SPLIT, which is for few
 * tiles, a cluster has as many such groups, or blocks, with a part of K each, which end with the
 * same tiles. Clusters of four share where all run at once: of 132 processors they find place on
 * 120. Matrices whose rows are not aligned to 16 bytes have no tensor map and go by plain loops. */
#include <cuda_bf16.h>

#define THREADS     (2 * ROWS) /* that multiply */
#define STAGE_BYTES (128 * (ROWS + BN))
#define SHARING     (CLUSTER * BESIDE)
#define BOX         (BN / CLUSTER < 64 ? BN / CLUSTER : 64) /* rows of B that a copy brings */

/* A stage is free when each warp has arrived from each block that its copies go to. In clusters of
 * four one warp arrives for its warpgroup, whose multiplication ends for all four at once. */
#define ARRIVALS (SHARING < 4 ? ROWS / 16 * SHARING : ROWS / 64 * (CLUSTER + BESIDE - 1))

/* What is read once leaves the L2 first, so that it does not push out what others wrote there. Both
 * as CUTLASS has them: with what createpolicy makes of evict_normal 2048 takes 34 us, not 29. */
#define EVICT_FIRST  0x12f0000000000000ull
#define EVICT_NORMAL 0x1000000000000000ull

struct alignas(64) map {
    char bytes[128];
};

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

static __device__ __forceinline__ void fetch(unsigned to, const struct map *map, int x, int y,
                                             unsigned barrier, unsigned long long policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "l"(policy)
                 : "memory");
}

static __device__ __forceinline__ unsigned cluster_rank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* The block's of the cluster's tiles, and its part of K: blocks with the same part share. */
static __device__ __forceinline__ unsigned share()
{
    return SHARING == 1 ? 0 : cluster_rank() % SHARING;
}

static __device__ __forceinline__ unsigned part()
{
    return SPLIT == 1 ? 0 : cluster_rank() / SHARING;
}

/* To the same place of those blocks that share, a bit each. */
static __device__ __forceinline__ void fetch_for_all(unsigned to, const struct map *map, int x,
                                                     int y, unsigned barrier, unsigned sharing,
                                                     unsigned long long policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier),
                 "h"((short)(sharing << part() * SHARING)), "l"(policy)
                 : "memory");
}

static __device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/* The same where nothing was written that others would read: a release takes 0.6 us. */
static __device__ __forceinline__ void cluster_meet()
{
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/* 128-byte swizzle; both offsets in bytes. */
static __device__ __forceinline__ unsigned long long describe(unsigned at, unsigned lead,
                                                              unsigned stride)
{
    return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(lead >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}

#define FOUR(d, i)    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(d, i) FOUR(d, i), FOUR(d, i + 4), FOUR(d, i + 8), FOUR(d, i + 12)

/* 64 rows of A by 16 of B's; B is as it lies, its columns contiguous. */
static __device__ __forceinline__ void multiply(float (&d)[BN / 2], unsigned long long a,
                                                unsigned long long b)
{
#if BN == 64
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
                 "}, %32, %33, 1, 1, 1, 0, 1;"
                 : SIXTEEN(d, 0), SIXTEEN(d, 16)
                 : "l"(a), "l"(b));
#elif BN == 128
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
                 "}, %64, %65, 1, 1, 1, 0, 1;"
                 : SIXTEEN(d, 0), SIXTEEN(d, 16), SIXTEEN(d, 32), SIXTEEN(d, 48)
                 : "l"(a), "l"(b));
#elif BN == 192
    asm volatile("wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
                 "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
                 "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
                 "}, %96, %97, 1, 1, 1, 0, 1;"
                 : SIXTEEN(d, 0), SIXTEEN(d, 16), SIXTEEN(d, 32), SIXTEEN(d, 48), SIXTEEN(d, 64),
                   SIXTEEN(d, 80)
                 : "l"(a), "l"(b));
#else
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
        "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
        "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
        "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"
        "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"
        "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
        "}, %128, %129, 1, 1, 1, 0, 1;"
        : SIXTEEN(d, 0), SIXTEEN(d, 16), SIXTEEN(d, 32), SIXTEEN(d, 48), SIXTEEN(d, 64),
          SIXTEEN(d, 80), SIXTEEN(d, 96), SIXTEEN(d, 112)
        : "l"(a), "l"(b));
#endif
}

/* The block's of the cluster's tile `number` of C, in groups of GROUP rows of tiles. */
static __device__ __forceinline__ void tile_at(int number, int down, int across, int *m0, int *n0)
{
    const int first = number / (GROUP * across) * GROUP, within = number % (GROUP * across);
    const int height = min(down - first, GROUP);
    *m0 = ((first + within % height) * CLUSTER + (int)share() % CLUSTER) * ROWS;
    *n0 = (within / height * BESIDE + (int)share() / CLUSTER) * BN;
}

static __device__ __forceinline__ unsigned pair(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

/* Of four lanes each has two columns of four groups of eight: it ends with all of one group. */
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

/* The block's of the K / 64 steps of a product. */
struct steps {
    int begin, end;
};

/* Each block of the cluster gets from the others what they have of its columns, where its stages
 * were. */
static __device__ __forceinline__ void add_parts(float (&d)[BN / 2], unsigned stages)
{
    const unsigned own = part(), thread = threadIdx.x;
    cluster_meet(); /* nobody reads its stages any more */
#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        const unsigned whose = i / (BN / 2 / SPLIT), at = i % (BN / 2 / SPLIT);
        if (whose != own)
            asm volatile("{\n.reg .b32 there;\n"
                         "mapa.shared::cluster.u32 there, %0, %1;\n"
                         "st.shared::cluster.f32 [there], %2;\n}" ::"r"(
                             stages + ((own * (BN / 2 / SPLIT) + at) * THREADS + thread) * 4),
                         "r"(whose * SHARING + share()), "f"(d[i])
                         : "memory");
    }
    cluster_sync();
#pragma unroll
    for (int i = 0; i < BN / 2; i++)
        for (unsigned from = 0; from < SPLIT; from++) {
            float part;
            if (i / (BN / 2 / SPLIT) != own || from == own)
                continue;
            asm volatile(
                "ld.shared.f32 %0, [%1];"
                : "=f"(part)
                : "r"(stages +
                      ((from * (BN / 2 / SPLIT) + i % (BN / 2 / SPLIT)) * THREADS + thread) * 4)
                : "memory");
            d[i] += part;
        }
}

static __device__ void plain(const __nv_bfloat16 *A, const __nv_bfloat16 *B, __nv_bfloat16 *C,
                             long long M, long long N, long long K)
{
    const long long threads = blockDim.x;
    for (long long i = blockIdx.x * threads + threadIdx.x; i < M * N; i += gridDim.x * threads) {
        const __nv_bfloat16 *a = A + i / N * K, *b = B + i % N;
        float sum = 0;
        for (long long k = 0; k < K; k++)
            sum = fmaf(__bfloat162float(a[k]), __bfloat162float(b[k * N]), sum);
        C[i] = __float2bfloat16_rn(sum);
    }
}

static __device__ __forceinline__ void copy_tiles(const struct map *map_a, const struct map *map_b,
                                                  unsigned stages, unsigned barriers, int down,
                                                  int across, struct steps steps)
{
    const unsigned long long policy_a = across == 1 ? EVICT_FIRST : EVICT_NORMAL,
                             policy_b = down == 1 ? EVICT_FIRST : EVICT_NORMAL;
    const unsigned below = share() % CLUSTER, beside = share() / CLUSTER;
    const unsigned row = (CLUSTER == 1 ? (1u << BESIDE) - 1 : 5u) << below,
                   column = ((1u << CLUSTER) - 1) << beside * CLUSTER;
    int slot = 0;
    unsigned parity = 1; /* nobody waits for a stage that was never filled */
    for (int number = blockIdx.x / (SHARING * SPLIT); number < down * across;
         number += gridDim.x / (SHARING * SPLIT)) {
        int m0, n0;
        tile_at(number, down, across, &m0, &n0);
        for (int step = steps.begin; step < steps.end; step++) {
            const unsigned full = barriers + 16 * slot, stage = stages + slot * STAGE_BYTES;
            barrier_wait(full + 8, parity);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                         "r"(STAGE_BYTES)
                         : "memory");
            if (BESIDE == 1)
                fetch(stage, map_a, step * 64, m0, full, policy_a);
            else
                fetch_for_all(stage + beside * (128 * ROWS / BESIDE), map_a, step * 64,
                              m0 + beside * (ROWS / BESIDE), full, row, policy_a);
#pragma unroll
            for (int p = 0; p < BN / BOX; p++) {
                const unsigned to = stage + 128 * (ROWS + BOX * p);
                const int x = n0 + p * BOX / 64 * 64, y = step * 64 + p * BOX % 64;
                if (CLUSTER == 1)
                    fetch(to, map_b, x, y, full, policy_b);
                else if (p % CLUSTER == below)
                    fetch_for_all(to, map_b, x, y, full, column, policy_b);
            }
            if (++slot == STAGES) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
    for (int s = 0; SHARING > 1 && s < STAGES; s++) { /* until nobody arrives here any more */
        barrier_wait(barriers + 16 * slot + 8, parity);
        if (++slot == STAGES) {
            slot = 0;
            parity ^= 1;
        }
    }
}

static __device__ __forceinline__ void multiply_tiles(__nv_bfloat16 *C, long long M, long long N,
                                                      unsigned stages, unsigned barriers, int down,
                                                      int across, struct steps steps)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, group = threadIdx.x / 128;
    int slot = 0;
    unsigned parity = 0;
    const unsigned to = SHARING < 4 ? lane : lane == 0 ? warp : SHARING;
    const bool shares = to < SHARING && (SHARING < 4 || CLUSTER != 2 || /* two by two: all */
                                         (to ^ share()) != 3);         /* but the one across */
    auto release = [&](int used) {
        if (shares)
            asm volatile("{\n.reg .b32 there;\n"
                         "mapa.shared::cluster.u32 there, %0, %1;\n"
                         "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barriers +
                                                                                    16 * used + 8),
                         "r"(part() * SHARING + to)
                         : "memory");
    };
    for (int number = blockIdx.x / (SHARING * SPLIT); number < down * across;
         number += gridDim.x / (SHARING * SPLIT)) {
        int m0, n0, before = 0;
        float d[BN / 2] = {};
        tile_at(number, down, across, &m0, &n0);
        for (int step = steps.begin; step < steps.end; step++) {
            const unsigned stage = stages + slot * STAGE_BYTES;
            barrier_wait(barriers + 16 * slot, parity);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            const unsigned long long a = describe(stage + 8192 * group, 16, 1024);
            const unsigned long long b = describe(stage + 128 * ROWS, 8192, 1024);
#pragma unroll
            for (int k = 0; k < 4; k++)
                multiply(d, a + 2 * k, b + 128 * k);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (step > steps.begin)
                release(before);
            before = slot;
            if (++slot == STAGES) {
                slot = 0;
                parity ^= 1;
            }
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (steps.begin < steps.end)
            release(before);
        if (SPLIT > 1)
            add_parts(d, stages);
        const long long m = m0 + 64 * group + 16 * warp + lane / 4;
#pragma unroll
        for (int h = 0; h < 2; h++) {
#pragma unroll
            for (int j = 0; BN % (32 * SPLIT) != 0 && j < BN / 8; j++) { /* too few to transpose */
                const long long n = n0 + 8 * j + lane % 4 * 2;
                if (j / (BN / 8 / SPLIT) == part() && n < N && m + 8 * h < M)
                    *(unsigned *)(C + (m + 8 * h) * N + n) =
                        pair(d[4 * j + 2 * h], d[4 * j + 2 * h + 1]);
            }
#pragma unroll
            for (int j = 0; BN % (32 * SPLIT) == 0 && j < BN / 8; j += 4) {
                if (SPLIT > 1 && j / (BN / 8 / SPLIT) != part())
                    continue;
                const long long n = n0 + 8 * j + lane % 4 * 8;
                unsigned r[4];
#pragma unroll
                for (int i = 0; i < 4; i++)
                    r[i] = pair(d[4 * (j + i) + 2 * h], d[4 * (j + i) + 2 * h + 1]);
                transpose(r);
                if (n < N && m + 8 * h < M)
                    *(uint4 *)(C + (m + 8 * h) * N + n) = make_uint4(r[0], r[1], r[2], r[3]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS + 32, BLOCKS)
    gemm(const __grid_constant__ struct map tile_a, const __grid_constant__ struct map tile_b,
         const __nv_bfloat16 *A, const __nv_bfloat16 *B, __nv_bfloat16 *C, long long M, long long N,
         long long K)
{
    extern __shared__ char memory[];
    if (N % 8 != 0 || K % 8 != 0) {
        plain(A, B, C, M, N, K);
        return;
    }
    const unsigned base = ((unsigned)__cvta_generic_to_shared(memory) + 1023) / 1024 * 1024;
    const unsigned barriers = base + STAGES * STAGE_BYTES;
    const int down = (int)((M + ROWS * CLUSTER - 1) / (ROWS * CLUSTER)),
              across = (int)((N + BN * BESIDE - 1) / (BN * BESIDE)), all = (int)((K + 63) / 64),
              first = (int)part();
    const struct steps steps = {all * first / SPLIT, all * (first + 1) / SPLIT};
    if (threadIdx.x == THREADS) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(barriers + 16 * s, 1);
            barrier_init(barriers + 16 * s + 8, ARRIVALS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (SHARING == 1)
        __syncthreads();
    else /* the fence has released what was set */
        cluster_meet();
    if (threadIdx.x < THREADS)
        multiply_tiles(C, M, N, base, barriers, down, across, steps);
    else {
        if (threadIdx.x == THREADS)
            copy_tiles(&tile_a, &tile_b, base, barriers, down, across, steps);
        if (SPLIT > 1) { /* as in add_parts */
            cluster_meet();
            cluster_sync();
        }
    }
}
