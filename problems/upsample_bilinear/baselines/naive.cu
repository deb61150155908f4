/*---
launch:
  - entry: upsample_bilinear_naive
    grid: ceil_div(N * C * OH * OW, 256)
    block: 256
    args: [X, Y, N, C, H, W, S, OH, OW]
---*/
/* The definition: a thread a number of the result. */
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

extern "C" __global__ void __launch_bounds__(256)
    upsample_bilinear_naive(const float *X, float *Y, long long N, long long C, long long H,
                            long long W, long long S, long long OH, long long OW)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < N * C * OH * OW)
        Y[i] = value(X, N, C, H, W, S, OH, OW, i / (OW * OH), i / OW % OH, i % OW);
}
