/*---
launch:
  - entry: upsample_bilinear_outputs
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
    /* Twice S times the place, in whole numbers: nothing is rounded. */
    const long long down = 2 * y + 1 > S ? 2 * y + 1 - S : 0,
                    right = 2 * x + 1 > S ? 2 * x + 1 - S : 0;
    const long long y0 = down / (2 * S), y1 = y0 + 1 < H ? y0 + 1 : H - 1;
    const long long x0 = right / (2 * S), x1 = x0 + 1 < W ? x0 + 1 : W - 1;
    const float v = (float)(down % (2 * S)) / (float)(2 * S),
                u = (float)(right % (2 * S)) / (float)(2 * S);
    const float *image = X + plane * H * W;
    const float above = image[y0 * W + x0] * (1 - u) + image[y0 * W + x1] * u;
    const float below = image[y1 * W + x0] * (1 - u) + image[y1 * W + x1] * u;
    return above * (1 - v) + below * v;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    upsample_bilinear_outputs(const float *X, float *Y, long long N, long long C, long long H,
                              long long W, long long S, long long OH, long long OW)
{
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const long long i = (blockIdx.x * (long long)EACH + u) * BLOCK + threadIdx.x;
        if (i < N * C * OH * OW)
            Y[i] = value(X, N, C, H, W, S, OH, OW, i / (OW * OH), i / OW % OH, i % OW);
    }
}
