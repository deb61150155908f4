/*---
launch:
  - entry: pack
    grid: sm_count * 4
    block: 256
    args: [A, B, packed_a, packed_b, M, N, K]
  - entry: gemm
    grid: >
      min(ceil_div(M, ROWS * CLUSTER) * CLUSTER * ceil_div(N, BN) * SPLIT,
      sm_count / CLUSTER * CLUSTER + (SPLIT > 1) * 1000000000)
    cluster: CLUSTER * SPLIT
    block: 2 * ROWS + 32
    shared: STAGES * 128 * (ROWS + BN) + 2 * ROWS * (BN / SPLIT + 8) + 2048
    args: [tile_a, tile_b, from_packed_a, from_packed_b, C, M, N, K]
workspace:
  packed_a: {shape: ["min(K % 8, 1) * (M - 1) + 1", "ceil_div(K, 64) * 64"], dtype: float16}
  packed_b: {shape: ["min(N % 8, 1) * (K - 1) + 1", "ceil_div(N, 64) * 64"], dtype: float16}
tma:
  tile_a: {tensor: A, box: [ROWS, 64], swizzle: 128B, l2: 256B}
  tile_b: {tensor: B, box: [64, 64], swizzle: 128B, l2: 256B}
  from_packed_a: {tensor: packed_a, box: [ROWS, 64], swizzle: 128B, l2: 256B}
  from_packed_b: {tensor: packed_b, box: [64, 64], swizzle: 128B, l2: 256B}
tune:
  ROWS: [128, 64, 192, 256]
  BN: [128, 256, 64]
  STAGES: [4, 3, 6, 8, 12]
  CLUSTER: [1, 2]
  SPLIT: [1, 2, 4, 8]
  where: >
    (N % 8 != 0 || K % 8 != 0)
    && STAGES * 128 * (ROWS + BN) + 2 * ROWS * (BN / SPLIT + 8) + 2048 <= 232448
    && (STAGES + 2) * 128 * (ROWS + BN) + 2 * ROWS * (BN / SPLIT + 8) > 190000
    && CLUSTER * SPLIT <= 8 && ROWS / 192 * BN <= 128
    && (SPLIT == 1 || SPLIT * 256 <= K
    && ceil_div(M, ROWS) * ceil_div(N, BN) * SPLIT <= 2 * sm_count)
---*/
/* For matrices whose rows are not aligned to 16 bytes, so that they have no tensor map. A first
 * launch copies those, and those alone, into rows that each begin a line of 128 bytes: what lies in
 * twice 16 bytes is shifted into 16. The second is as `wgmma`: warpgroups multiply 64 rows each, a
 * warp copies tiles of ROWS x 64 of A and 64 x BN of B into STAGES stages, the two blocks of a
 * cluster have tiles of C below one another and copy half of B each for both, and with SPLIT, which
 * is for few tiles, there are as many such pairs in a cluster, each with a part of K, which end with
 * one tile. C's rows go through shared memory, moved to where they are in their 16 bytes, while the
 * next tile's copies run. */

#define THREADS     (2 * ROWS) /* that multiply */
#define STAGE_BYTES (128 * (ROWS + BN))
#define PANELS      (BN / 64)
#define OWN         (BN / SPLIT) /* columns of C that the block stores */
#define PITCH       (OWN + 8)

/* What is read once leaves the L2 first, so that it does not push out what others wrote there. */
#define EVICT_FIRST  0x12f0000000000000ull
#define EVICT_NORMAL 0x1000000000000000ull

typedef unsigned short u16;

struct alignas(64) map {
    char bytes[128];
};

struct product {
    u16 *C;
    long long M, N, K;
    int down, across; /* tiles; down: of a cluster's height */
    int begin, end;   /* of the K / 64 steps, the block's */
};

struct memory {
    unsigned stages, barriers;
    u16 *rows; /* ROWS of PITCH numbers */
};

static __device__ __forceinline__ uint4 once(const u16 *from)
{
    uint4 to;
    asm volatile("ld.global.nc.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
                 : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w)
                 : "l"(from), "l"(EVICT_FIRST));
    return to;
}

/* Eight numbers from `at` of `count`, of which `inside` are the row's; zeros after them. */
static __device__ __forceinline__ uint4 eight(const u16 *from, long long at, long long count,
                                              int inside)
{
    const int skipped = (int)(at & 7);
    const long long first = at - skipped;
    unsigned w[8], r[4];
    if (first + 16 <= count) {
        const uint4 a = once(from + first), b = once(from + first + 8);
        w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w;
        w[4] = b.x, w[5] = b.y, w[6] = b.z, w[7] = b.w;
    } else { /* the matrix ends here */
        for (int i = 0; i < 8; i++) {
            const long long k = first + 2 * i;
            w[i] = (k < count ? from[k] : 0) | (k + 1 < count ? from[k + 1] << 16 : 0);
        }
    }
#pragma unroll
    for (int i = 0; i < 6; i++)
        w[i] = skipped & 4 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; i++)
        w[i] = skipped & 2 ? w[i + 1] : w[i];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        r[i] = __funnelshift_r(w[i], w[i + 1], skipped % 2 * 16);
        if (2 * i + 1 >= inside)
            r[i] = 2 * i < inside ? r[i] & 0xffff : 0;
    }
    return make_uint4(r[0], r[1], r[2], r[3]);
}

static __device__ __forceinline__ void pack_matrix(const u16 *from, uint4 *to, long long rows,
                                                   long long columns)
{
    const unsigned across = (unsigned)((columns + 63) / 64 * 8), all = (unsigned)rows * across;
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += 4 * threads) {
        uint4 kept[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const unsigned n = i + k * threads, row = n / across, column = n % across * 8;
            if (n < all)
                kept[k] = column < columns
                              ? eight(from, row * columns + column, rows * columns,
                                      (int)min(columns - column, 8ll))
                              : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + k * threads < all)
                to[i + k * threads] = kept[k];
    }
}

extern "C" __global__ void __launch_bounds__(256)
    pack(const u16 *__restrict__ A, const u16 *__restrict__ B, uint4 *packed_a, uint4 *packed_b,
         long long M, long long N, long long K)
{
    if (N % 8 != 0)
        pack_matrix(B, packed_b, K, N);
    if (K % 8 != 0)
        pack_matrix(A, packed_a, M, K);
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
    return CLUSTER == 1 ? 0 : cluster_rank() % CLUSTER;
}

static __device__ __forceinline__ unsigned part()
{
    return SPLIT == 1 ? 0 : cluster_rank() / CLUSTER;
}

/* To the same place of every block that shares. */
static __device__ __forceinline__ void fetch_for_all(unsigned to, const struct map *map, int x,
                                                     int y, unsigned barrier,
                                                     unsigned long long policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier),
                 "h"((short)(((1 << CLUSTER) - 1) << part() * CLUSTER)), "l"(policy)
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
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
                 "}, %32, %33, 1, 1, 1, 0, 1;"
                 : SIXTEEN(d, 0), SIXTEEN(d, 16)
                 : "l"(a), "l"(b));
#elif BN == 128
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
                 "}, %64, %65, 1, 1, 1, 0, 1;"
                 : SIXTEEN(d, 0), SIXTEEN(d, 16), SIXTEEN(d, 32), SIXTEEN(d, 48)
                 : "l"(a), "l"(b));
#else
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
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

static __device__ __forceinline__ unsigned pair(float low, float high)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

/* The block's of the cluster's tile `number` of C, in groups of eight rows of tiles. */
static __device__ __forceinline__ void tile_at(int number, const struct product *p, int *m0,
                                               int *n0)
{
    const int first = number / (8 * p->across) * 8, within = number % (8 * p->across);
    const int height = min(p->down - first, 8);
    *m0 = ((first + within % height) * CLUSTER + (int)share()) * ROWS;
    *n0 = within / height * BN;
}

static __device__ __forceinline__ void copy_tiles(const struct map *map_a, const struct map *map_b,
                                                  const struct product *p,
                                                  const struct memory *memory)
{
    const unsigned long long policy_a = p->across == 1 ? EVICT_FIRST : EVICT_NORMAL,
                             policy_b = p->down == 1 ? EVICT_FIRST : EVICT_NORMAL;
    const unsigned own = share();
    int slot = 0;
    unsigned parity = 1; /* nobody waits for a stage that was never filled */
    auto next = [&]() {
        if (++slot == STAGES) {
            slot = 0;
            parity ^= 1;
        }
    };
    for (int number = blockIdx.x / (CLUSTER * SPLIT); number < p->down * p->across;
         number += gridDim.x / (CLUSTER * SPLIT)) {
        int m0, n0;
        tile_at(number, p, &m0, &n0);
        for (int step = p->begin; step < p->end; step++, next()) {
            const unsigned full = memory->barriers + 16 * slot,
                           stage = memory->stages + slot * STAGE_BYTES;
            barrier_wait(full + 8, parity);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                         "r"(STAGE_BYTES)
                         : "memory");
            fetch(stage, map_a, step * 64, m0, full, policy_a);
#pragma unroll
            for (int i = 0; i < PANELS; i++) {
                const unsigned to = stage + 128 * ROWS + 8192 * i;
                if (CLUSTER == 1)
                    fetch(to, map_b, n0 + 64 * i, step * 64, full, policy_b);
                else if (i % CLUSTER == own)
                    fetch_for_all(to, map_b, n0 + 64 * i, step * 64, full, policy_b);
            }
        }
    }
    for (int s = 0; CLUSTER > 1 && s < STAGES; s++, next()) /* until nobody arrives here any more */
        barrier_wait(memory->barriers + 16 * slot + 8, parity);
}

/* Each block of the cluster gets from the others what they have of its columns, where its stages
 * were. */
static __device__ __forceinline__ void add_parts(float (&d)[BN / 2], unsigned stages)
{
    const unsigned own = part(), thread = threadIdx.x;
    cluster_meet(); /* nobody reads its stages any more */
#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        const unsigned whose = i / (OWN / 2), at = i % (OWN / 2);
        if (whose != own)
            asm volatile("{\n.reg .b32 there;\n"
                         "mapa.shared::cluster.u32 there, %0, %1;\n"
                         "st.shared::cluster.f32 [there], %2;\n}" ::"r"(
                             stages + ((own * (OWN / 2) + at) * THREADS + thread) * 4),
                         "r"(whose * CLUSTER + share()), "f"(d[i])
                         : "memory");
    }
    cluster_sync();
#pragma unroll
    for (int i = 0; i < BN / 2; i++)
        for (unsigned from = 0; from < SPLIT; from++) {
            float part;
            if (i / (OWN / 2) != own || from == own)
                continue;
            asm volatile("ld.shared.f32 %0, [%1];"
                         : "=f"(part)
                         : "r"(stages + ((from * (OWN / 2) + i % (OWN / 2)) * THREADS + thread) * 4)
                         : "memory");
            d[i] += part;
        }
}

static __device__ __forceinline__ void wait_for_all()
{
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

/* Of the tile that begins at row m0 and column n0 of C, both the block's own. */
static __device__ __forceinline__ void store(const float (&d)[BN / 2], const struct product *p,
                                             u16 *rows, long long m0, long long n0)
{
    const int lane = threadIdx.x % 32, first = part() * (OWN / 8);
    wait_for_all(); /* nobody reads the last tile any more */
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = threadIdx.x / 32 * 16 + lane / 4 + 8 * h;
        const int shift = (int)(((m0 + row) * p->N + n0) & 7);
        u16 *to = rows + row * PITCH + shift + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            const unsigned both = pair(d[4 * j + 2 * h], d[4 * j + 2 * h + 1]);
            if (SPLIT > 1 && j / (OWN / 8) != first / (OWN / 8))
                continue;
            if (shift % 2 == 0) {
                *(unsigned *)(to + 8 * (j - first)) = both;
            } else {
                to[8 * (j - first)] = (u16)both;
                to[8 * (j - first) + 1] = (u16)(both >> 16);
            }
        }
    }
    wait_for_all();
    const int width = (int)min(p->N - n0, (long long)OWN);
    for (int i = threadIdx.x; i < ROWS * (OWN / 8 + 1); i += THREADS) {
        const int row = i / (OWN / 8 + 1), chunk = i % (OWN / 8 + 1);
        const long long m = m0 + row;
        const int shift = (int)((m * p->N + n0) & 7), column = 8 * chunk - shift;
        if (m >= p->M || column >= width)
            continue;
        const u16 *from = rows + row * PITCH + 8 * chunk;
        u16 *to = p->C + m * p->N + n0 + column;
        if (column >= 0 && column + 8 <= width)
            *(uint4 *)to = *(const uint4 *)from;
        else
#pragma unroll
            for (int k = 0; k < 8; k++)
                if (column + k >= 0 && column + k < width)
                    to[k] = from[k];
    }
}

static __device__ __forceinline__ void multiply_tiles(const struct product *p,
                                                      const struct memory *memory)
{
    const int lane = threadIdx.x % 32, group = threadIdx.x / 128;
    int slot = 0;
    unsigned parity = 0;
    auto release = [&](int used) {
        if (lane < CLUSTER)
            asm volatile("{\n.reg .b32 there;\n"
                         "mapa.shared::cluster.u32 there, %0, %1;\n"
                         "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(
                             memory->barriers + 16 * used + 8),
                         "r"(part() * CLUSTER + lane)
                         : "memory");
    };
    for (int number = blockIdx.x / (CLUSTER * SPLIT); number < p->down * p->across;
         number += gridDim.x / (CLUSTER * SPLIT)) {
        int m0, n0, before = 0;
        float d[BN / 2] = {};
        tile_at(number, p, &m0, &n0);
        for (int step = p->begin; step < p->end; step++) {
            const unsigned stage = memory->stages + slot * STAGE_BYTES;
            barrier_wait(memory->barriers + 16 * slot, parity);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            const unsigned long long a = describe(stage + 8192 * group, 16, 1024);
            const unsigned long long b = describe(stage + 128 * ROWS, 8192, 1024);
#pragma unroll
            for (int k = 0; k < 4; k++)
                multiply(d, a + 2 * k, b + 128 * k);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (step > p->begin)
                release(before);
            before = slot;
            if (++slot == STAGES) {
                slot = 0;
                parity ^= 1;
            }
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (p->begin < p->end)
            release(before);
        if (SPLIT > 1)
            add_parts(d, memory->stages);
        store(d, p, memory->rows, m0, n0 + part() * OWN);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS + 32, 1)
    gemm(const __grid_constant__ struct map tile_a, const __grid_constant__ struct map tile_b,
         const __grid_constant__ struct map from_packed_a,
         const __grid_constant__ struct map from_packed_b, u16 *C, long long M, long long N,
         long long K)
{
    extern __shared__ char shared[];
    const unsigned start = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned skipped = (start + 1023) / 1024 * 1024 - start;
    const struct memory memory = {start + skipped, start + skipped + STAGES * STAGE_BYTES,
                                  (u16 *)(shared + skipped + STAGES * STAGE_BYTES + 256)};
    const int steps = (int)((K + 63) / 64), first = (int)part();
    const struct product p = {C, M, N, K, (int)((M + ROWS * CLUSTER - 1) / (ROWS * CLUSTER)),
                              (int)((N + BN - 1) / BN), steps * first / SPLIT,
                              steps * (first + 1) / SPLIT};
    if (threadIdx.x == THREADS) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(memory.barriers + 16 * s, 1);
            barrier_init(memory.barriers + 16 * s + 8, ROWS / 16 * CLUSTER);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (CLUSTER == 1)
        __syncthreads();
    else /* the fence has released what was set */
        cluster_meet();
    if (threadIdx.x < THREADS)
        multiply_tiles(&p, &memory);
    else {
        if (threadIdx.x == THREADS)
            copy_tiles(K % 8 == 0 ? &tile_a : &from_packed_a, N % 8 == 0 ? &tile_b : &from_packed_b,
                       &p, &memory);
        if (SPLIT > 1) { /* as in add_parts */
            cluster_meet();
            cluster_sync();
        }
    }
}
