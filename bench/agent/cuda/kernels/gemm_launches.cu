/*---
tune:
  THREADS: [1024, 512]
  AHEAD: [8, 4]
  ROWS: [4, 8]
workspace:
  sums: {shape: [4096], dtype: float32}
launch:
  - {entry: column_sums, grid: 128, block: THREADS, args: [x, weight, sums, B]}
  - {entry: weighted_rows, grid: "ceil_div(B, ROWS)", block: 32 * ROWS, args: [x, sums, out, B]}
---*/
/* sum_n x W^T = x (sum_n W[n]): a block of the first launch sums 32 columns of W and asks for its share of x to be brought
 * to the L2; a warp of the second multiplies a row of x with all sums. */
#define K 4096
#define BLOCKS 128
#define WARPS (THREADS / 32)

/* ---- the hardware's own ---- */
static __device__ __forceinline__ void prefetch(const float *from, unsigned bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

static __device__ __forceinline__ float4 read_once(const float4 *from)
{
    float4 v; /* volatile: all are asked for before any is waited for, as it is written */
    asm volatile("ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(from));
    return v;
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

static __device__ __forceinline__ float dot(float4 a, float4 b, float sum)
{
    return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
column_sums(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ sums, long long B)
{
    __shared__ float4 part[THREADS / 4];
    if (threadIdx.x == 0)
        for (long long row = blockIdx.x; row < B && row < 8 * BLOCKS; row += BLOCKS)
            prefetch(x + row * K, 4 * K);
    sum_columns(weight, sums, part);
}

extern "C" __global__ void __launch_bounds__(32 * ROWS, 2)
weighted_rows(const float *__restrict__ x, const float *__restrict__ sums, float *__restrict__ out, long long B)
{
    const int lane = threadIdx.x % 32;
    const long long row = (long long)blockIdx.x * ROWS + threadIdx.x / 32;
    if (row >= B)
        return;
    float4 v[K / 4 / 32];
#pragma unroll
    for (int i = 0; i < K / 4 / 32; i++)
        v[i] = read_once((const float4 *)(x + row * K) + lane + i * 32);
    float sum[4] = {};
#pragma unroll
    for (int i = 0; i < K / 4 / 32; i++)
        sum[i % 4] = dot(v[i], __ldg((const float4 *)sums + lane + i * 32), sum[i % 4]);
    float all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        all += __shfl_xor_sync(~0u, all, d);
    if (lane == 0)
        out[row] = all * 0.75f;
}
