/*---
tune:
  CLUSTER: [16, 8]
  THREADS: [512, 1024, 384]
  BLOCKS: [2, 1]
  HINT: [1, 0]
launch:
  - entry: softmax_registers
    grid: CLUSTER * B
    block: THREADS
    cluster: CLUSTER
    args: [x, out]
---*/
/* A cluster a row: each thread keeps its numbers in registers, so that the row is read once. Blocks exchange their maxima
 * and sums through each other's shared memory, once. BLOCKS of them on a processor: one reads while the other writes. */
#define ROW 393216
#define PART (ROW / CLUSTER)
#define EACH (PART / 4 / THREADS)
#define WARPS (THREADS / 32)
#define LEAST -3.402823466e38f
#define LOG2E 1.44269504f

/* ---- the hardware's own ---- */
static __device__ __forceinline__ unsigned cluster_rank()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

static __device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

/* To the same place in the shared memory of another block. */
static __device__ __forceinline__ void send(float2 *to, float2 pair, unsigned rank)
{
    asm volatile("{\n.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %3;\n"
                 "st.shared::cluster.v2.f32 [there], {%1, %2};\n}" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "f"(pair.x), "f"(pair.y), "r"(rank)
                 : "memory");
}

static __device__ __forceinline__ float4 read_once(const float4 *from)
{
    return HINT ? __ldcs(from) : __ldg(from);
}

static __device__ __forceinline__ float power(float v)
{
    float two;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(two) : "f"(v));
    return two;
}
/* ---- end ---- */

static __device__ __forceinline__ float weight(float v, float most)
{
    return power((v - most) * LOG2E);
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

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
softmax_registers(const float *__restrict__ x, float *__restrict__ out)
{
    __shared__ float2 warps[32], pairs[16];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned rank = cluster_rank();
    const long long at = (long long)(blockIdx.x / CLUSTER) * (ROW / 4) + rank * (PART / 4) + threadIdx.x;
    float4 v[EACH];
    cluster_arrive(); /* all blocks have begun, when that is waited for */
#pragma unroll
    for (int i = 0; i < EACH; i++)
        v[i] = read_once((const float4 *)x + at + i * THREADS);
    float most = LEAST, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        most = fmaxf(most, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
#pragma unroll
    for (int i = 0; i < EACH; i++)
        sum += (weight(v[i].x, most) + weight(v[i].y, most)) + (weight(v[i].z, most) + weight(v[i].w, most));
    float2 pair = join(most, sum);
    if (lane == 0)
        warps[warp] = pair;
    __syncthreads();
    cluster_wait();
    if (warp == 0) {
        pair = lane < WARPS ? warps[lane] : make_float2(LEAST, 0.0f);
        pair = join(pair.x, pair.y);
        if (lane < CLUSTER)
            send(pairs + rank, pair, lane);
    }
    cluster_arrive();
    cluster_wait();
    pair = lane < CLUSTER ? pairs[lane] : make_float2(LEAST, 0.0f);
    pair = join(pair.x, pair.y);
    const float scale = 1.0f / pair.y;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        ((float4 *)out)[at + i * THREADS] = make_float4(weight(v[i].x, pair.x) * scale, weight(v[i].y, pair.x) * scale,
                                                        weight(v[i].z, pair.x) * scale, weight(v[i].w, pair.x) * scale);
}
