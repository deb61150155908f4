/*---
tune:
  CLUSTER: [8, 16]
  BLOCK: [1024, 512]
launch:
  - {entry: softmax_row, grid: "B * CLUSTER", block: BLOCK, cluster: CLUSTER,
     shared: 393216 / CLUSTER * 4, args: [x, out]}
---*/
/* A row of 393216 numbers is 1.5 MB: it lies in the shared memory of a cluster of CLUSTER blocks, so
 * that it is read once and written once. Blocks tell each other their largest number and their sum. */
#define LONG 393216
#define PART4 (LONG / CLUSTER / 4)
#define LOG2E 1.44269504f

static __device__ __forceinline__ float of_block(const float *shared_value, int rank)
{
    unsigned address;
    float value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(address)
                 : "r"((unsigned)__cvta_generic_to_shared(shared_value)), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
    return value;
}

static __device__ __forceinline__ void cluster_barrier(void)
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

template <bool LARGEST> static __device__ __forceinline__ float of_warp(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        const float other = __shfl_xor_sync(~0u, v, d);
        v = LARGEST ? fmaxf(v, other) : v + other;
    }
    return v;
}

/* Of all threads of the cluster; `own` is what other blocks read. */
template <bool LARGEST>
static __device__ __forceinline__ float of_cluster(float v, float *warps, float *own)
{
    v = of_warp<LARGEST>(v);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < BLOCK / 32 ? warps[threadIdx.x] : LARGEST ? -INFINITY : 0.0f;
        v = of_warp<LARGEST>(v);
        if (threadIdx.x == 0)
            *own = v;
    }
    cluster_barrier();
    v = of_block(own, threadIdx.x % CLUSTER);
#pragma unroll
    for (int d = CLUSTER / 2; d > 0; d /= 2) {
        const float other = __shfl_xor_sync(~0u, v, d);
        v = LARGEST ? fmaxf(v, other) : v + other;
    }
    return v;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_row(const float *__restrict__ x, float *__restrict__ out)
{
    extern __shared__ float4 part[];
    __shared__ float warps[32], most, total;
    const long long at = (long long)blockIdx.x * PART4;
    const float4 *in = (const float4 *)x + at;
    float largest = -INFINITY, sum = 0.0f;
#pragma unroll 8
    for (int i = threadIdx.x; i < PART4; i += BLOCK) {
        const float4 v = __ldcs(in + i);
        part[i] = v;
        largest = fmaxf(largest, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    largest = of_cluster<true>(largest, warps, &most);
#pragma unroll 4
    for (int i = threadIdx.x; i < PART4; i += BLOCK) {
        float4 v = part[i];
        v.x = exp2f((v.x - largest) * LOG2E);
        v.y = exp2f((v.y - largest) * LOG2E);
        v.z = exp2f((v.z - largest) * LOG2E);
        v.w = exp2f((v.w - largest) * LOG2E);
        sum += (v.x + v.y) + (v.z + v.w);
        part[i] = v;
    }
    const float scale = 1.0f / of_cluster<false>(sum, warps, &total);
#pragma unroll 4
    for (int i = threadIdx.x; i < PART4; i += BLOCK) {
        float4 v = part[i];
        v.x *= scale;
        v.y *= scale;
        v.z *= scale;
        v.w *= scale;
        __stcs((float4 *)out + at + i, v);
    }
    cluster_barrier(); /* nobody leaves while another block reads what it told */
}
