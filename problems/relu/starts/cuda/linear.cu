/*---
launch:
  - entry: relu
    grid: min(ceil_div(M * N, 4 * BLOCK), BLOCKS * sm_count)
    block: BLOCK
    args: [X, Y, M, N]
tune:
  BLOCK: [256, 512, 1024, 128]
  BLOCKS: [8, 4, 16, 32]
  UNROLL: [4, 2, 8, 1]
  STREAM: [1, 0]
  RESIDENT: [1024, 2048, 1536, 768, 512]
---*/
/* As many blocks as are at work at once walk through the matrix together, UNROLL loads of 16 bytes
 * a thread under way. STREAM: what is read and written once is to leave the caches first. */
static __device__ __forceinline__ float4 rectify(float4 v)
{
    v.x = v.x < 0.0f ? 0.0f : v.x;
    v.y = v.y < 0.0f ? 0.0f : v.y;
    v.z = v.z < 0.0f ? 0.0f : v.z;
    v.w = v.w < 0.0f ? 0.0f : v.w;
    return v;
}

static __device__ __forceinline__ float4 load(const float4 *x)
{
    return STREAM ? __ldcs(x) : *x;
}

static __device__ __forceinline__ void store(float4 *y, float4 v)
{
    if (STREAM)
        __stcs(y, v);
    else
        *y = v;
}

extern "C" __global__ void __launch_bounds__(BLOCK, (RESIDENT + BLOCK - 1) / BLOCK)
    relu(const float *__restrict__ X, float *__restrict__ Y, long long M, long long N)
{
    const long long all = M * N, count = all / 4, step = gridDim.x * (long long)BLOCK;
    const long long first = blockIdx.x * (long long)BLOCK + threadIdx.x;
    const float4 *x = (const float4 *)X;
    float4 *y = (float4 *)Y;
    long long i = first;
    for (; i + (UNROLL - 1) * step < count; i += UNROLL * step) {
        float4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            v[u] = load(x + i + u * step);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            store(y + i + u * step, rectify(v[u]));
    }
    for (; i < count; i += step)
        store(y + i, rectify(load(x + i)));
    if (first < all % 4)
        Y[4 * count + first] = X[4 * count + first] < 0.0f ? 0.0f : X[4 * count + first];
}
