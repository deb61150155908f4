/*---
launch:
  - entry: depthwise_conv2d_naive
    grid: ceil_div(N * C * OH * OW, 256)
    block: 256
    args: [X, F, Y, N, C, H, W, R, S, PAD, STRIDE, OH, OW]
---*/
/* The definition: a thread a number of the result. */
static __device__ __forceinline__ float
value(const float *__restrict__ X, const float *__restrict__ F, long long N, long long C,
      long long H, long long W, long long R, long long S, long long PAD, long long STRIDE,
      long long OH, long long OW, long long plane, long long y, long long x)
{
    const long long top = y * STRIDE - PAD, left = x * STRIDE - PAD;
    const float *image = X + plane * H * W, *f = F + plane % C * R * S;
    float sum = 0;
    for (long long r = 0; r < R; r++)
        for (long long s = 0; s < S; s++)
            if (top + r >= 0 && top + r < H && left + s >= 0 && left + s < W)
                sum = fmaf(image[(top + r) * W + left + s], f[r * S + s], sum);
    return sum;
}

extern "C" __global__ void __launch_bounds__(256)
    depthwise_conv2d_naive(const float *X, const float *F, float *Y, long long N, long long C,
                           long long H, long long W, long long R, long long S, long long PAD,
                           long long STRIDE, long long OH, long long OW)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < N * C * OH * OW)
        Y[i] =
            value(X, F, N, C, H, W, R, S, PAD, STRIDE, OH, OW, i / (OW * OH), i / OW % OH, i % OW);
}
