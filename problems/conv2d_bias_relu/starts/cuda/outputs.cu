/*---
launch:
  - entry: conv2d_bias_relu_outputs
    grid: ceil_div(N * K * OH * OW, BLOCK * EACH)
    block: BLOCK
    args: [X, F, bias, Y, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW]
tune:
  BLOCK: [128, 256, 512]
  EACH: [1, 2, 4, 8]
---*/
/* A thread EACH numbers of the result, BLOCK apart, so that their loads are under way together. */
static __device__ __forceinline__ float
value(const float *__restrict__ X, const float *__restrict__ F, const float *__restrict__ bias,
      long long N, long long C, long long H, long long W, long long K, long long R, long long S,
      long long PAD, long long STRIDE, long long OH, long long OW, long long plane, long long y,
      long long x)
{
    const long long top = y * STRIDE - PAD, left = x * STRIDE - PAD, k = plane % K;
    const float *image = X + plane / K * C * H * W, *f = F + k * C * R * S;
    float sum = 0;
    for (long long c = 0; c < C; c++)
        for (long long r = 0; r < R; r++)
            for (long long s = 0; s < S; s++)
                if (top + r >= 0 && top + r < H && left + s >= 0 && left + s < W)
                    sum =
                        fmaf(image[(c * H + top + r) * W + left + s], f[(c * R + r) * S + s], sum);
    sum += bias[k];
    return sum < 0.0f ? 0.0f : sum; /* fmaxf loses a NaN */
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    conv2d_bias_relu_outputs(const float *X, const float *F, const float *bias, float *Y,
                             long long N, long long C, long long H, long long W, long long K,
                             long long R, long long S, long long PAD, long long STRIDE,
                             long long OH, long long OW)
{
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const long long i = (blockIdx.x * (long long)EACH + u) * BLOCK + threadIdx.x;
        if (i < N * K * OH * OW)
            Y[i] = value(X, F, bias, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW, i / (OW * OH),
                         i / OW % OH, i % OW);
    }
}
