/*---
launch:
  - entry: reference
    grid: ceil_div(N * K * OH * OW, 256)
    block: 256
    args: [X, F, mean, variance, gamma, beta, Y, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW]
---*/
/* The definition in float64, for shapes at which numpy takes its time. */
extern "C" __global__ void reference(const double *X, const double *F, const double *mean,
                                     const double *variance, const double *gamma,
                                     const double *beta, double *Y, long long N, long long C,
                                     long long H, long long W, long long K, long long R,
                                     long long S, long long PAD, long long STRIDE, long long OH,
                                     long long OW)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i >= N * K * OH * OW)
        return;
    const long long w0 = i % OW * STRIDE - PAD, h0 = i / OW % OH * STRIDE - PAD,
                    k = i / (OW * OH) % K;
    const double *x = X + i / (OW * OH * K) * C * H * W, *f = F + k * C * R * S;
    double sum = 0;
    for (long long c = 0; c < C; c++)
        for (long long r = 0; r < R; r++)
            for (long long s = 0; s < S; s++)
                if (h0 + r >= 0 && h0 + r < H && w0 + s >= 0 && w0 + s < W)
                    sum = fma(x[(c * H + h0 + r) * W + w0 + s], f[(c * R + r) * S + s], sum);
    const double normal = (sum - mean[k]) / sqrt(variance[k] + 1e-5) * gamma[k] + beta[k];
    Y[i] = normal / (1 + exp(-normal));
}
