/*---
launch:
  - entry: upsample_nearest_outputs
    grid: ceil_div(N * C * OH * OW, BLOCK * EACH)
    block: BLOCK
    args: [X, Y, N, C, H, W, S, OH, OW]
tune:
  BLOCK: [128, 256, 512]
  EACH: [1, 2, 4, 8]
---*/
/* A thread EACH numbers of the result, BLOCK apart, so that their loads are under way together. */
static __device__ __forceinline__ float value(const float *__restrict__ X, long long N, long long C,
                                              long long H, long long W, long long S, long long OH,
                                              long long OW, long long plane, long long y,
                                              long long x)
{
    return X[(plane * H + y / S) * W + x / S];
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    upsample_nearest_outputs(const float *X, float *Y, long long N, long long C, long long H,
                             long long W, long long S, long long OH, long long OW)
{
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const long long i = (blockIdx.x * (long long)EACH + u) * BLOCK + threadIdx.x;
        if (i < N * C * OH * OW)
            Y[i] = value(X, N, C, H, W, S, OH, OW, i / (OW * OH), i / OW % OH, i % OW);
    }
}
