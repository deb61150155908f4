/*---
launch:
  - entry: max_pool2d_outputs
    grid: ceil_div(N * C * OH * OW, BLOCK * EACH)
    block: BLOCK
    args: [X, Y, N, C, H, W, K, PAD, STRIDE, OH, OW]
tune:
  BLOCK: [128, 256, 512]
  EACH: [1, 2, 4, 8]
---*/
/* fmaxf loses a NaN. */
static __device__ __forceinline__ float larger(float a, float b)
{
    return b > a || b != b ? b : a;
}

/* A thread EACH numbers of the result, BLOCK apart, so that their loads are under way together. */
static __device__ __forceinline__ float value(const float *__restrict__ X, long long N, long long C,
                                              long long H, long long W, long long K, long long PAD,
                                              long long STRIDE, long long OH, long long OW,
                                              long long plane, long long y, long long x)
{
    const long long top = y * STRIDE - PAD, left = x * STRIDE - PAD;
    const float *image = X + plane * H * W;
    float most = -INFINITY;
    for (long long h = top < 0 ? 0 : top; h < top + K && h < H; h++)
        for (long long w = left < 0 ? 0 : left; w < left + K && w < W; w++)
            most = larger(most, image[h * W + w]);
    return most;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    max_pool2d_outputs(const float *X, float *Y, long long N, long long C, long long H, long long W,
                       long long K, long long PAD, long long STRIDE, long long OH, long long OW)
{
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const long long i = (blockIdx.x * (long long)EACH + u) * BLOCK + threadIdx.x;
        if (i < N * C * OH * OW)
            Y[i] = value(X, N, C, H, W, K, PAD, STRIDE, OH, OW, i / (OW * OH), i / OW % OH, i % OW);
    }
}
