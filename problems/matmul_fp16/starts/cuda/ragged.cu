/*---
launch:
  - entry: gemm
    grid: ceil_div(M, ROWS) * ceil_div(N, BN - 8 * min(N % 8, 1)) * SPLIT
    cluster: SPLIT
    block: 256 + 2 * ROWS
    shared: (AHEAD + 3) * 128 * (ROWS + BN) + 2048
    args: [A, B, C, M, N, K]
tune:
  ROWS: [64, 128]
  BN: [128, 64, 256]
  SPLIT: [8, 6, 4, 3, 2, 1]
  AHEAD: [3, 2, 4]
  where: >
    (N % 8 != 0 || K % 8 != 0) && (M <= 512 || N <= 512)
    && ROWS * BN <= 16384 && (AHEAD + 3) * 128 * (ROWS + BN) + 2048 <= 232448
    && (SPLIT == 1 || SPLIT * 64 <= K
    && ceil_div(M, ROWS) * ceil_div(N, BN) * SPLIT <= 3 * sm_count)
---*/
/* For few rows or columns where rows are not aligned to 16 bytes, so that they have no tensor map,
 * and a copy to aligned ones would take longer than the product. The rows r, r + 8, r + 16... of a
 * matrix lie alike in their 16 bytes, since eight rows are a multiple of them. Warp r of eight copies
 * these, of both matrices, as the 16 bytes in which they are, AHEAD steps of 64 of K before they are
 * needed, shifts them by what is the same for all, and puts them where wgmma wants them. Warpgroups
 * multiply 64 rows each. A cluster's blocks have a part of K each; each adds up all parts of its
 * share of the tile. */
#include <cuda_fp16.h>

#define STAGES      2                /* that wgmma reads */
#define THREADS     (256 + 2 * ROWS) /* eight warps that copy, and those that multiply */
#define STAGE_BYTES (128 * (ROWS + BN))
#define RING        (AHEAD + 1) /* of what is copied: the last step's is needed again */
#define CHUNKS      (BN / 8)    /* of 16 bytes, in which a row of B's tile is copied */
#define A_COPIES    (ROWS / 32) /* of a lane for a step */
#define B_COPIES    (BN / 32)
#define A_BEHIND    (512 * B_COPIES) /* a warp's rows of A lie behind those of B */
#define B_APART     (8 * 32 / CHUNKS) /* rows from a copy of a lane to its next */
#define PITCH       (BN + 8)          /* of the tile's sums */

/* What is read once leaves the L2 first, so that it does not push out what others wrote there. */
#define EVICT_FIRST  0x12f0000000000000ull
#define EVICT_NORMAL 0x1000000000000000ull

typedef unsigned short u16;

struct source { /* of a lane */
    const u16 *at, *end; /* its first 16 bytes of step 0; the matrix's end */
    long long apart;     /* numbers from a copy to the next */
    unsigned long long policy;
};

struct place { /* of the block's tile, and of the warp's rows in their 16 bytes */
    long long M, N, K, m0, n0;
    int skip_a, skip_b; /* numbers */
    int begin, end;     /* of the K / 64 steps, the block's */
};

struct memory {
    unsigned stages, ring, barriers;
};

static __device__ __forceinline__ void copy(unsigned to, const u16 *from,
                                            unsigned long long policy)
{
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "l"(policy)
                 : "memory");
}

static __device__ __forceinline__ void set(unsigned to, u16 number)
{
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(number) : "memory");
}

/* The same where the matrix may end; zeros behind it. */
static __device__ __forceinline__ void copy_inside(unsigned to, const struct source *s,
                                                   const u16 *from)
{
    if (from + 8 <= s->end) {
        copy(to, from, s->policy);
        return;
    }
#pragma unroll 1
    for (int i = 0; i < 8; i++)
        set(to + 2 * i, from + i < s->end ? from[i] : 0);
}

static __device__ __forceinline__ void load(unsigned *to, unsigned from)
{
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

/* Of each pair of 16 bytes the 16 that begin SKIPPED words and `odd` bits later; none: the first. */
template <int COPIES, int SKIPPED>
static __device__ __forceinline__ void shift(unsigned to, unsigned apart, unsigned first,
                                             unsigned second, unsigned odd)
{
    unsigned w[COPIES][8];
#pragma unroll
    for (int i = 0; i < COPIES; i++) {
        load(w[i], first + i * 512);
        if (SKIPPED >= 0)
            load(w[i] + 4, second + i * 512);
    }
#pragma unroll
    for (int i = 0; i < COPIES; i++) {
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (SKIPPED >= 0)
                w[i][k] = __funnelshift_r(w[i][SKIPPED + k], w[i][SKIPPED + k + 1], odd);
        asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to + i * apart), "r"(w[i][0]),
                     "r"(w[i][1]), "r"(w[i][2]), "r"(w[i][3])
                     : "memory");
    }
}

template <int COPIES>
static __device__ __forceinline__ void put(unsigned to, unsigned apart, unsigned first,
                                           unsigned second, int skipped)
{
    const unsigned odd = skipped % 2 * 16;
    switch (skipped) {
    case 0: shift<COPIES, -1>(to, apart, first, second, odd); break;
    case 1: shift<COPIES, 0>(to, apart, first, second, odd); break;
    case 2:
    case 3: shift<COPIES, 1>(to, apart, first, second, odd); break;
    case 4:
    case 5: shift<COPIES, 2>(to, apart, first, second, odd); break;
    default: shift<COPIES, 3>(to, apart, first, second, odd);
    }
}

static __device__ __forceinline__ void barrier_init(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(unsigned barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
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

static __device__ __forceinline__ unsigned cluster_rank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
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

/* The warp's rows of both matrices, step after step. Where a copy goes is kept a lane: of a part that
 * all lanes share ptxas 13.0 makes a uniform register, and of that with a policy an instruction that
 * does not exist. */
static __device__ __forceinline__ void copy_rows(const struct source *a, const struct source *b,
                                                 const struct place *p, const struct memory *memory)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned own = memory->ring + warp * (STAGE_BYTES / 8) + lane * 16,
                   last = own + AHEAD * STAGE_BYTES;
    const unsigned turned = ((lane % 8) ^ warp) * 16 + warp * 128;
    const unsigned to_a = memory->stages + turned + lane / 8 * 1024;
    const unsigned to_b = memory->stages + turned + 128 * ROWS + lane % CHUNKS / 8 * 8192 +
                          lane / CHUNKS * 1024;
    const bool wanted = p->n0 + lane % CHUNKS * 8 - p->skip_b < p->N;
    auto fetch = [&](int step, unsigned to) {
        const u16 *from_a = a->at + step * 64ll, *from_b = b->at + step * 64ll * p->N;
        if (step < p->end && step * 64ll + 72 <= p->K) {
#pragma unroll
            for (int i = 0; i < B_COPIES; i++)
                if (wanted)
                    copy(to + i * 512, from_b + i * b->apart, b->policy);
#pragma unroll
            for (int i = 0; i < A_COPIES; i++)
                if (p->m0 + warp + lane / 8 * 8 + i * 32 < p->M)
                    copy(to + A_BEHIND + i * 512, from_a + i * a->apart, a->policy);
        } else if (step < p->end) { /* rows of B that are not there are zeros */
#pragma unroll 1
            for (int i = 0; i < B_COPIES; i++) {
                const long long k = step * 64ll + warp + lane / CHUNKS * 8 + i * B_APART;
                copy_inside(to + i * 512, b, k < p->K ? from_b + i * b->apart : b->end);
            }
#pragma unroll 1
            for (int i = 0; i < A_COPIES; i++)
                if (p->m0 + warp + lane / 8 * 8 + i * 32 < p->M)
                    copy_inside(to + A_BEHIND + i * 512, a, from_a + i * a->apart);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    if (lane % 8 == 7) /* what is before the first numbers */
#pragma unroll 1
        for (int i = 0; i < A_COPIES; i++)
            if (p->m0 + warp + lane / 8 * 8 + i * 32 < p->M)
                copy_inside(last + A_BEHIND + i * 512, a,
                            a->at + p->begin * 64ll - 64 + i * a->apart);
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        fetch(p->begin + i, own + i * STAGE_BYTES);
    unsigned at = own, before = last, stage = 0;
    unsigned parity = 1; /* nobody waits for a stage that was never filled */
    for (int step = p->begin; step < p->end; step++) {
        const unsigned full = memory->barriers + 16 * stage, a_at = at + A_BEHIND;
        asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD - 1) : "memory");
        __syncwarp();
        barrier_wait(full + 8, parity);
        put<B_COPIES>(to_b + stage * STAGE_BYTES, B_APART * 128, at, at + 16, p->skip_b);
        put<A_COPIES>(to_a + stage * STAGE_BYTES, 4096,
                      lane % 8 == 0 ? before + A_BEHIND + 7 * 16 : a_at - 16, a_at, p->skip_a);
        const long long inside = p->K - step * 64ll - lane % 8 * 8;
        if (inside < 8) /* what is behind K is multiplied by B's zeros */
#pragma unroll 1
            for (int i = 0; i < 8 * A_COPIES; i++)
                if (i % 8 >= inside)
                    set(to_a + stage * STAGE_BYTES + i / 8 * 4096 + i % 8 * 2, 0);
        barrier_arrive(full);
        fetch(step + AHEAD, before);
        before = at;
        at = at == last ? own : at + STAGE_BYTES;
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
}

static __device__ __forceinline__ void multiply_tiles(float (&d)[BN / 2], int steps,
                                                      const struct memory *memory)
{
    const int group = threadIdx.x / 128 - 2;
    unsigned slot = 0, parity = 0;
    for (int step = 0; step < steps; step++) {
        const unsigned stage = memory->stages + slot * STAGE_BYTES,
                       full = memory->barriers + 16 * slot;
        barrier_wait(full, parity);
        /* not by those who write: they have copies on the way, and take 4 % longer with it */
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        const unsigned long long a = describe(stage + 8192 * group, 16, 1024);
        const unsigned long long b = describe(stage + 128 * ROWS, 8192, 1024);
#pragma unroll
        for (int k = 0; k < 4; k++)
            multiply(d, a + 2 * k, b + 128 * k);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        barrier_arrive(full + 8);
        if (++slot == STAGES) {
            slot = 0;
            parity ^= 1;
        }
    }
}

/* Into shared memory, where the stages were. */
static __device__ __forceinline__ void keep(const float (&d)[BN / 2], float *tile)
{
    const int lane = threadIdx.x % 32, m = threadIdx.x / 32 * 16 - 128 + lane / 4;
    asm volatile("bar.sync 1, %0;" ::"n"(2 * ROWS) : "memory"); /* nobody reads these any more */
#pragma unroll
    for (int j = 0; j < BN / 8; j++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(float2 *)(tile + (m + 8 * h) * PITCH + lane % 4 * 2 + 8 * j) =
                make_float2(d[4 * j + 2 * h], d[4 * j + 2 * h + 1]);
}

/* The tile's sums of all parts, the block's share of them. */
static __device__ __forceinline__ void store(const float *tile, u16 *C, int rows, int columns,
                                             long long N)
{
    cluster_sync();
    const unsigned first = cluster_rank();
    for (int i = first * THREADS + threadIdx.x; i < rows * (BN / 4); i += SPLIT * THREADS) {
        const int row = i / (BN / 4), column = i % (BN / 4) * 4;
        if (column >= columns) /* so that all that is read is used, and has come, before the end */
            continue;
        const unsigned at = (unsigned)__cvta_generic_to_shared(tile + row * PITCH + column);
        float4 part[SPLIT];
#pragma unroll
        for (int p = 0; p < SPLIT; p++)
            asm volatile("{\n.reg .b32 there;\n"
                         "mapa.shared::cluster.u32 there, %4, %5;\n"
                         "ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [there];\n}"
                         : "=f"(part[p].x), "=f"(part[p].y), "=f"(part[p].z), "=f"(part[p].w)
                         : "r"(at), "r"(p)
                         : "memory");
        float sums[4] = {};
#pragma unroll
        for (int p = 0; p < SPLIT; p++) {
            sums[0] += part[p].x;
            sums[1] += part[p].y;
            sums[2] += part[p].z;
            sums[3] += part[p].w;
        }
        for (int k = 0; k < 4; k++)
            if (column + k < columns)
                C[row * N + column + k] = __half_as_ushort(__float2half_rn(sums[k]));
    }
    cluster_meet(); /* nobody reads this block's any more */
}

extern "C" __global__ void __launch_bounds__(THREADS, ROWS *BN <= 4096 ? 2 : 1)
    gemm(const u16 *__restrict__ A, const u16 *__restrict__ B, u16 *__restrict__ C, long long M,
         long long N, long long K)
{
    extern __shared__ char shared[];
    const unsigned start = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned skipped = (start + 1023) / 1024 * 1024 - start;
    const struct memory memory = {start + skipped, start + skipped + STAGES * STAGE_BYTES,
                                  start + skipped + (STAGES + RING) * STAGE_BYTES};
    const int useful = N % 8 == 0 ? BN : BN - 8; /* columns, that are shifted into the tile */
    const unsigned down = (unsigned)((M + ROWS - 1) / ROWS), tile = blockIdx.x / SPLIT;
    const long long m0 = (long long)(tile % down) * ROWS, n0 = (long long)(tile / down) * useful;
    const long long all = (K + 63) / 64, part = cluster_rank();
    const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const struct place p = {M, N, K, m0, n0, (int)((warp * K) & 7), (int)((warp * N) & 7),
                            (int)(all * part / SPLIT), (int)(all * (part + 1) / SPLIT)};
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(memory.barriers + 16 * s, 8);
            barrier_init(memory.barriers + 16 * s + 8, ROWS / 16);
        }
    }
    __syncthreads();
    if (warp < 8) {
        const struct source a = {
            A + (m0 + lane / 8 * 8) * K + warp * K - p.skip_a + (lane % 8 + 1) * 8, A + M * K,
            32 * K, N <= useful ? EVICT_FIRST : EVICT_NORMAL};
        const struct source b = {
            B + lane / CHUNKS * 8 * N + warp * N - p.skip_b + n0 + lane % CHUNKS * 8, B + K * N,
            B_APART * N, down == 1 ? EVICT_FIRST : EVICT_NORMAL};
        copy_rows(&a, &b, &p, &memory);
    } else {
        float d[BN / 2] = {};
        multiply_tiles(d, p.end - p.begin, &memory);
        keep(d, (float *)(shared + skipped));
    }
    store((float *)(shared + skipped), C + m0 * N + n0, (int)min(M - m0, (long long)ROWS),
          (int)min(N - n0, (long long)useful), N);
}
