/*---
launch:
  - entry: gelu_linear
    grid: min(ceil_div(M * N, 4 * BLOCK), BLOCKS * sm_count)
    block: BLOCK
    args: [X, Y, M, N]
tune:
  BLOCK: [128, 256, 512, 1024]
  BLOCKS: [1048576, 8, 4, 16, 32]
  UNROLL: [1, 4, 2]
  STREAM: [0, 1]
---*/
/* A block for each BLOCK loads of 16 bytes, which the hardware hands out; or, with fewer BLOCKS, as
 * many as are at work at once walk through the matrix together, UNROLL loads a thread under way.
 * STREAM: what is read and written once is to leave the caches first. */
static __device__ __forceinline__ float apply(float x)
{
    return 0.5f * x * erfcf(-x * 0.70710678f);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    gelu_linear(const float *__restrict__ X, float *__restrict__ Y, long long M, long long N)
{
    const long long all = M * N, count = all / 4, step = gridDim.x * (long long)BLOCK;
    const long long first = blockIdx.x * (long long)BLOCK + threadIdx.x;
    const float4 *x = (const float4 *)X;
    float4 *y = (float4 *)Y;
    for (long long i = first; i < count; i += UNROLL * step) {
        float4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (i + u * step < count)
                v[u] = STREAM ? __ldcs(x + i + u * step) : x[i + u * step];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const float4 w = {apply(v[u].x), apply(v[u].y), apply(v[u].z), apply(v[u].w)};
            if (i + u * step >= count)
                break;
            if (STREAM)
                __stcs(y + i + u * step, w);
            else
                y[i + u * step] = w;
        }
    }
    if (first < all % 4)
        Y[4 * count + first] = apply(X[4 * count + first]);
}
