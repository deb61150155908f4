/*---
launch:
  - entry: reference
    grid: ceil_div(N * C * OH * OW, 256)
    block: 256
    args: [X, Y, N, C, H, W, S, OH, OW]
---*/
/* The definition in float64, for shapes at which numpy takes its time. */
extern "C" __global__ void reference(const double *X, double *Y, long long N, long long C,
                                     long long H, long long W, long long S, long long OH,
                                     long long OW)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i >= N * C * OH * OW)
        return;
    const double h = fmax((double(i / OW % OH) + 0.5) / S - 0.5, 0.0),
                 w = fmax((double(i % OW) + 0.5) / S - 0.5, 0.0);
    const long long h0 = h, w0 = w, h1 = min(h0 + 1, H - 1), w1 = min(w0 + 1, W - 1);
    const double *x = X + i / (OW * OH) * H * W;
    const double left = x[h0 * W + w0] * (1 - (h - h0)) + x[h1 * W + w0] * (h - h0),
                 right = x[h0 * W + w1] * (1 - (h - h0)) + x[h1 * W + w1] * (h - h0);
    Y[i] = left * (1 - (w - w0)) + right * (w - w0);
}
