/*---
tune:
  THREADS: [512, 1024]
  AHEAD: [8, 16]
workspace:
  sums: {shape: [4096], dtype: float32}
launch:
  - entry: weighted_rows
    grid: 128
    block: THREADS
    shared: 131072 + 4 * THREADS * 4 + 16
    cooperative: true
    args: [x, weight, sums, out, B]
---*/
/* sum_n x W^T = x (sum_n W[n]): one pass over W and one over x. A block sums 32 columns of W, while the copy engine brings
 * its 8 rows of x to shared memory; then all wait for each other, and each multiplies its rows with all sums. */
#include <cooperative_groups.h>
#define K 4096
#define BLOCKS 128
#define ROWS 8
#define WARPS (THREADS / 32)

/* ---- the hardware's own ---- */
static __device__ __forceinline__ unsigned address(const void *shared)
{
    return (unsigned)__cvta_generic_to_shared(shared);
}

static __device__ __forceinline__ void barrier_init(unsigned long long *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(address(barrier))
                 : "memory");
}

static __device__ __forceinline__ void barrier_expect(unsigned long long *barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void barrier_wait(unsigned long long *barrier)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(address(barrier))
                     : "memory");
}

static __device__ __forceinline__ void fetch(float *to, const float *from, unsigned bytes, unsigned long long *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(address(to)),
                 "l"(from), "r"(bytes), "r"(address(barrier))
                 : "memory");
}

static __device__ __forceinline__ void grid_sync()
{
    cooperative_groups::this_grid().sync();
}

static __device__ __forceinline__ float4 read_once(const float4 *from)
{
    float4 v; /* volatile: all are asked for before any is waited for, as it is written */
    asm volatile("ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(from));
    return v;
}

static __device__ __forceinline__ float4 read_others(const float4 *from)
{
    return __ldcg(from);
}
/* ---- end ---- */

static __device__ __forceinline__ float4 plus(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

static __device__ __forceinline__ float4 across(float4 v, int d)
{
    return plus(v, make_float4(__shfl_xor_sync(~0u, v.x, d), __shfl_xor_sync(~0u, v.y, d), __shfl_xor_sync(~0u, v.z, d),
                               __shfl_xor_sync(~0u, v.w, d)));
}

/* 32 columns of W from 32 * blockIdx.x on: a warp has four rows of them at a time. */
static __device__ __forceinline__ void sum_columns(const float *weight, float *sums, float4 *part)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float4 *from = (const float4 *)weight + (long long)(threadIdx.x / 8) * (K / 4) + blockIdx.x * 8 + threadIdx.x % 8;
    float4 sum[2] = {}, next[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        next[i] = read_once(from + (long long)(i * (THREADS / 8)) * (K / 4));
    for (int n = AHEAD * THREADS / 8; n < K; n += AHEAD * THREADS / 8)
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            sum[i % 2] = plus(sum[i % 2], next[i]);
            next[i] = read_once(from + (long long)(n + i * (THREADS / 8)) * (K / 4));
        }
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        sum[i % 2] = plus(sum[i % 2], next[i]);
    const float4 v = across(across(plus(sum[0], sum[1]), 8), 16);
    if (lane < 8)
        part[warp * 8 + lane] = v;
    __syncthreads();
    if (threadIdx.x < 8) {
        float4 all = part[threadIdx.x];
        for (int w = 1; w < WARPS; w++)
            all = plus(all, part[w * 8 + threadIdx.x]);
        ((float4 *)sums)[blockIdx.x * 8 + threadIdx.x] = all;
    }
}

/* A row's products, summed by a block; the result is thread 0's alone. */
static __device__ __forceinline__ float sum_of_block(float v, float *part)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    if (lane == 0)
        part[warp] = v;
    __syncthreads();
    v = lane < WARPS ? part[lane] : 0.0f;
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    __syncthreads();
    return v;
}

static __device__ __forceinline__ float dot(float4 a, float4 b, float sum)
{
    return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
weighted_rows(const float *__restrict__ x, const float *__restrict__ weight, float *sums, float *__restrict__ out,
              long long B)
{
    extern __shared__ __align__(128) float rows[];
    float4 *part = (float4 *)(rows + ROWS * K);
    unsigned long long *full = (unsigned long long *)(part + THREADS / 4);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int count = 0; /* rows blockIdx.x, blockIdx.x + 128, ... that are in shared memory */
    while (count < ROWS && blockIdx.x + count * BLOCKS < B)
        count++;
    if (threadIdx.x == 0) {
        barrier_init(full);
        barrier_expect(full, count * 4 * K);
        for (int r = 0; r < count; r++)
            fetch(rows + r * K, x + (long long)(blockIdx.x + r * BLOCKS) * K, 4 * K, full);
    }
    sum_columns(weight, sums, part);
    grid_sync();
    float4 factor[K / 4 / THREADS];
#pragma unroll
    for (int i = 0; i < K / 4 / THREADS; i++)
        factor[i] = read_others((const float4 *)sums + threadIdx.x + i * THREADS);
    barrier_wait(full);
    float sum[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        sum[r] = 0.0f;
        if (r < count)
#pragma unroll
            for (int i = 0; i < K / 4 / THREADS; i++)
                sum[r] = dot(((const float4 *)(rows + r * K))[threadIdx.x + i * THREADS], factor[i], sum[r]);
    }
    /* eight sums in 32 lanes: each step halves the sums that a lane has */
    int mine = 0;
#pragma unroll
    for (int half = ROWS / 2, d = 16; half > 0; half /= 2, d /= 2) {
        const bool upper = lane & d;
#pragma unroll
        for (int r = 0; r < half; r++) {
            const float keep = upper ? sum[r + half] : sum[r], give = upper ? sum[r] : sum[r + half];
            sum[r] = keep + __shfl_xor_sync(~0u, give, d);
        }
        mine += upper ? half : 0;
    }
    sum[0] += __shfl_xor_sync(~0u, sum[0], 2);
    sum[0] += __shfl_xor_sync(~0u, sum[0], 1);
    if (lane % 4 == 0)
        ((float *)part)[warp * ROWS + mine] = sum[0];
    __syncthreads();
    if (threadIdx.x < count) {
        float all = 0.0f;
        for (int w = 0; w < WARPS; w++)
            all += ((float *)part)[w * ROWS + threadIdx.x];
        out[blockIdx.x + threadIdx.x * BLOCKS] = all * 0.75f;
    }
    __syncthreads();
    for (long long row = blockIdx.x + (long long)ROWS * BLOCKS; row < B; row += BLOCKS) {
        float all = 0.0f;
#pragma unroll
        for (int i = 0; i < K / 4 / THREADS; i++)
            all = dot(((const float4 *)(x + row * K))[threadIdx.x + i * THREADS], factor[i], all);
        all = sum_of_block(all, (float *)part);
        if (threadIdx.x == 0)
            out[row] = all * 0.75f;
    }
}
