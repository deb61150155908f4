/*---
tune:
  CLUSTER: [16, 8]
  KEEP: [0, 4]
  SLOTS: [13, 26]
  HINT: [1, 0]
launch:
  - entry: softmax_ring
    grid: CLUSTER * min(B, sm_count / CLUSTER)
    block: 544
    cluster: CLUSTER
    shared: 212992 + 16 * CLUSTER + 128 + 16 * SLOTS + 16
    args: [x, out, B]
---*/
/* A cluster a row, and rows in a loop: each block has a part of the row in a ring of shared memory. A warp of its own
 * fills the ring, which runs ahead into the next row while this one is exchanged and written, so that reads and writes
 * are on their way at any time. Each number is read once. The first KEEP pieces are kept in registers, so that their
 * places in the ring are free early. With HINT what was read leaves the L2 before what was written. */
#define ROW 393216
#define PART (ROW / CLUSTER)
#define PIECE (53248 / SLOTS)
#define PIECES (PART / PIECE)
#define THREADS 512
#define WARPS (THREADS / 32)
#define EACH (PIECE / 4 / THREADS)
#define LEAST -3.402823466e38f
#define LOG2E 1.44269504f

/* ---- the hardware's own ---- */
static __device__ __forceinline__ unsigned address(const void *shared)
{
    return (unsigned)__cvta_generic_to_shared(shared);
}

static __device__ __forceinline__ unsigned cluster_rank()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

static __device__ __forceinline__ void barrier_init(unsigned long long *barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(count) : "memory");
}

static __device__ __forceinline__ void barriers_seen()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ __forceinline__ void barrier_expect(unsigned long long *barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void barrier_arrive(unsigned long long *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}

static __device__ __forceinline__ void barrier_wait(unsigned long long *barrier, unsigned parity)
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

static __device__ __forceinline__ void fetch(float *to, const float *from, unsigned bytes, unsigned long long *barrier)
{
#if HINT
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
                 " [%0], [%1], %2, [%3], %4;" ::"r"(address(to)),
                 "l"(from), "r"(bytes), "r"(address(barrier)), "l"(policy)
                 : "memory");
#else
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(address(to)),
                 "l"(from), "r"(bytes), "r"(address(barrier))
                 : "memory");
#endif
}

/* To the same place in the shared memory of another block, whose barrier counts the bytes. */
static __device__ __forceinline__ void send(float2 *to, float2 pair, unsigned long long *barrier, unsigned rank)
{
    asm volatile("{\n.reg .b32 there, bell;\n.reg .b64 both;\n"
                 "mapa.shared::cluster.u32 there, %0, %4;\n"
                 "mapa.shared::cluster.u32 bell, %1, %4;\n"
                 "mov.b64 both, {%2, %3};\n"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [there], both, [bell];\n}" ::"r"(address(to)),
                 "r"(address(barrier)), "r"(__float_as_uint(pair.x)), "r"(__float_as_uint(pair.y)), "r"(rank)
                 : "memory");
}

static __device__ __forceinline__ void consumers_sync()
{
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

static __device__ __forceinline__ float power(float v)
{
    float two;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(two) : "f"(v));
    return two;
}
/* ---- end ---- */

static __device__ __forceinline__ float most_of(float4 v)
{
    return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}

static __device__ __forceinline__ float weight(float v, float most)
{
    return power((v - most) * LOG2E);
}

static __device__ __forceinline__ float sum_of(float4 v, float most)
{
    return (weight(v.x, most) + weight(v.y, most)) + (weight(v.z, most) + weight(v.w, most));
}

/* Maxima and sums of a warp become one pair, in all of its lanes. */
static __device__ __forceinline__ float2 join(float most, float sum)
{
    float top = most;
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
    sum *= weight(most, top);
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    return make_float2(top, sum);
}

static __device__ __forceinline__ void take(const float4 v[EACH], float &most, float &sum)
{
    float top = most;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        top = fmaxf(top, most_of(v[i]));
    sum *= weight(most, top);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        sum += sum_of(v[i], top);
    most = top;
}

static __device__ __forceinline__ void give(float4 *to, const float4 v[EACH], float most, float scale)
{
#pragma unroll
    for (int i = 0; i < EACH; i++)
        to[i * THREADS] = make_float4(weight(v[i].x, most) * scale, weight(v[i].y, most) * scale,
                                      weight(v[i].z, most) * scale, weight(v[i].w, most) * scale);
}

static __device__ __forceinline__ void look(float4 v[EACH], const float *piece)
{
#pragma unroll
    for (int i = 0; i < EACH; i++)
        v[i] = ((const float4 *)piece)[threadIdx.x + i * THREADS];
}

extern "C" __global__ void __launch_bounds__(THREADS + 32, 1)
softmax_ring(const float *__restrict__ x, float *__restrict__ out, long long B)
{
    extern __shared__ __align__(128) float ring[];
    float2 *pairs = (float2 *)(ring + SLOTS * PIECE); /* two rows' */
    float2 *warps = pairs + 2 * CLUSTER;
    unsigned long long *full = (unsigned long long *)(warps + WARPS), *empty = full + SLOTS, *met = empty + SLOTS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned rank = cluster_rank();
    const long long first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) {
            barrier_init(full + i, 1);
            barrier_init(empty + i, WARPS);
        }
        barrier_init(met, 1);
        barrier_init(met + 1, 1);
        barriers_seen();
    }
    cluster_sync();
    if (warp == WARPS) {
        unsigned slot = 0, round = 0;
        for (long long row = first; lane == 0 && row < B; row += step)
            for (int p = 0; p < PIECES; p++) {
                if (round > 0)
                    barrier_wait(empty + slot, (round - 1) & 1);
                barrier_expect(full + slot, 4 * PIECE);
                fetch(ring + slot * PIECE, x + row * ROW + rank * PART + p * PIECE, 4 * PIECE, full + slot);
                if (++slot == SLOTS)
                    slot = 0, round++;
            }
        __syncwarp();
    } else {
        unsigned slot = 0, round = 0, turn = 0;
        for (long long row = first; row < B; row += step, turn++) {
            float most = LEAST, sum = 0.0f;
            float4 kept[KEEP > 0 ? KEEP : 1][EACH];
            if (threadIdx.x == 0)
                barrier_expect(met + (turn & 1), 8 * CLUSTER);
#pragma unroll
            for (int p = 0; p < KEEP; p++) {
                barrier_wait(full + slot, round & 1);
                look(kept[p], ring + slot * PIECE);
                __syncwarp();
                if (lane == 0)
                    barrier_arrive(empty + slot);
                take(kept[p], most, sum);
                if (++slot == SLOTS)
                    slot = 0, round++;
            }
            const unsigned begun = slot;
#pragma unroll 2
            for (int p = KEEP; p < PIECES; p++) {
                float4 v[EACH];
                barrier_wait(full + slot, round & 1);
                look(v, ring + slot * PIECE);
                take(v, most, sum);
                if (++slot == SLOTS)
                    slot = 0, round++;
            }
            float2 pair = join(most, sum);
            if (lane == 0)
                warps[warp] = pair;
            consumers_sync();
            if (warp == 0) {
                pair = lane < WARPS ? warps[lane] : make_float2(LEAST, 0.0f);
                pair = join(pair.x, pair.y);
                if (lane < CLUSTER)
                    send(pairs + (turn & 1) * CLUSTER + rank, pair, met + (turn & 1), lane);
            }
            barrier_wait(met + (turn & 1), turn / 2 & 1);
            pair = lane < CLUSTER ? pairs[(turn & 1) * CLUSTER + lane] : make_float2(LEAST, 0.0f);
            pair = join(pair.x, pair.y);
            const float scale = 1.0f / pair.y;
            float4 *to = (float4 *)(out + row * ROW + rank * PART) + threadIdx.x;
            unsigned old = begun;
#pragma unroll 2
            for (int p = KEEP; p < PIECES; p++) {
                float4 v[EACH];
                look(v, ring + old * PIECE);
                __syncwarp();
                if (lane == 0)
                    barrier_arrive(empty + old);
                give(to + p * (PIECE / 4), v, pair.x, scale);
                if (++old == SLOTS)
                    old = 0;
            }
#pragma unroll
            for (int p = 0; p < KEEP; p++)
                give(to + p * (PIECE / 4), kept[p], pair.x, scale);
        }
    }
    cluster_sync(); /* nobody ends while another may still send to it */
}
