/*---
launch:
  - entry: batch_norm_planes
    grid: ceil_div(H * W, BLOCK * EACH), N * C
    block: BLOCK
    args: [X, mean, variance, gamma, beta, Y, N, C, H, W]
tune:
  BLOCK: [128, 256, 512]
  EACH: [4, 1, 2, 8, 16]
---*/
/* A plane's factor and shift are computed once by each thread, for EACH numbers of it. */
extern "C" __global__ void __launch_bounds__(BLOCK)
    batch_norm_planes(const float *X, const float *mean, const float *variance, const float *gamma,
                      const float *beta, float *Y, long long N, long long C, long long H,
                      long long W)
{
    const long long plane = blockIdx.y, c = plane % C, count = H * W;
    const float factor = gamma[c] / sqrtf(variance[c] + 1e-5f), m = mean[c], b = beta[c];
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const long long i = (blockIdx.x * (long long)EACH + u) * BLOCK + threadIdx.x;
        if (i < count)
            __stcs(Y + plane * count + i, (__ldcs(X + plane * count + i) - m) * factor + b);
    }
}
