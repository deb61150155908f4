/*---
launch:
  - entry: batch_norm_naive
    grid: ceil_div(N * C * H * W, 256)
    block: 256
    args: [X, mean, variance, gamma, beta, Y, N, C, H, W]
---*/
/* The definition: a thread a number. */
extern "C" __global__ void __launch_bounds__(256)
    batch_norm_naive(const float *X, const float *mean, const float *variance, const float *gamma,
                     const float *beta, float *Y, long long N, long long C, long long H,
                     long long W)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i >= N * C * H * W)
        return;
    const long long c = i / (H * W) % C;
    Y[i] = (X[i] - mean[c]) / sqrtf(variance[c] + 1e-5f) * gamma[c] + beta[c];
}
