/*---
launch:
  - entry: reference
    grid: ceil_div(N * C * OH * OW, 256)
    block: 256
    args: [X, F, Y, N, C, H, W, R, S, PAD, STRIDE, OH, OW]
---*/
/* The definition in float64, for shapes at which numpy takes its time. */
extern "C" __global__ void reference(const double *X, const double *F, double *Y, long long N,
                                     long long C, long long H, long long W, long long R,
                                     long long S, long long PAD, long long STRIDE, long long OH,
                                     long long OW)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i >= N * C * OH * OW)
        return;
    const long long w0 = i % OW * STRIDE - PAD, h0 = i / OW % OH * STRIDE - PAD,
                    c = i / (OW * OH) % C;
    const double *x = X + i / (OW * OH) * H * W, *f = F + c * R * S;
    double sum = 0;
    for (long long r = 0; r < R; r++)
        for (long long s = 0; s < S; s++)
            if (h0 + r >= 0 && h0 + r < H && w0 + s >= 0 && w0 + s < W)
                sum = fma(x[(h0 + r) * W + w0 + s], f[r * S + s], sum);
    Y[i] = sum;
}
