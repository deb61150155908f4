/*---
launch:
  - entry: relu
    grid: ceil_div(M * N, 4 * BLOCK * UNROLL)
    block: BLOCK
    args: [X, Y, M, N]
tune:
  BLOCK: [128, 256, 512, 1024]
  UNROLL: [1, 2, 4, 8]
  STREAM: [0, 1]
---*/
/* A block does one contiguous burst of 4 * BLOCK * UNROLL numbers and ends: all loads of a thread
 * are under way before the first store, and the hardware hands out the blocks. With STREAM the caches
 * are told that nothing is read again. */
static __device__ __forceinline__ float rectify(float v)
{
    return v < 0.0f ? 0.0f : v;
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1)
    relu(const float *__restrict__ X, float *__restrict__ Y, long long M, long long N)
{
    const long long all = M * N,
                    first = 4 * (blockIdx.x * (long long)(BLOCK * UNROLL) + threadIdx.x);
    float4 v[UNROLL] = {};
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const long long i = first + 4 * BLOCK * u;
        if (i + 4 <= all)
            v[u] = STREAM ? __ldcs((const float4 *)(X + i)) : *(const float4 *)(X + i);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const long long i = first + 4 * BLOCK * u;
        const float4 found =
            make_float4(rectify(v[u].x), rectify(v[u].y), rectify(v[u].z), rectify(v[u].w));
        if (i + 4 > all)
            for (long long k = i; k < all; k++)
                Y[k] = rectify(X[k]);
        else if (STREAM)
            __stcs((float4 *)(Y + i), found);
        else
            *(float4 *)(Y + i) = found;
    }
}
