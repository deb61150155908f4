/*---
launch:
  - entry: conv2d
    grid: ceil_div(N * OH * OW, BLOCK) * ceil_div(K, FILTERS)
    block: BLOCK
    args: [X, F, Y, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW]
tune:
  FILTERS: [8, 4, 16, 32]
  BLOCK: [128, 64, 256]
---*/
/* A thread a pixel of FILTERS filters: each number of the image that it reads serves all of them,
 * and what it needs of the filters is the same for the whole block and comes from the cache. No
 * shared memory, no barrier; for few channels and small filters. */
extern "C" __global__ void __launch_bounds__(BLOCK, 1024 / BLOCK)
    conv2d(const float *__restrict__ X, const float *__restrict__ F, float *__restrict__ Y,
           long long N, long long C, long long H, long long W, long long K, long long R,
           long long S, long long PAD, long long STRIDE, long long OH, long long OW)
{
    const unsigned down = (unsigned)((K + FILTERS - 1) / FILTERS);
    const long long outs = OH * OW, taps = C * R * S;
    const long long pixel = blockIdx.x / down * (long long)BLOCK + threadIdx.x,
                    k0 = blockIdx.x % down * (long long)FILTERS;
    if (pixel >= N * outs)
        return;
    const int top = (int)(pixel % outs / OW * STRIDE - PAD),
              left = (int)(pixel % outs % OW * STRIDE - PAD);
    const float *x = X + pixel / outs * C * H * W;
    const float *f[FILTERS];
#pragma unroll
    for (int i = 0; i < FILTERS; i++)
        f[i] = F + min(k0 + i, K - 1) * taps;
    float sum[FILTERS] = {};
    for (int c = 0; c < C; c++, x += H * W)
        for (int r = 0; r < R; r++) {
            const int h = top + r;
            const bool row = h >= 0 && h < H;
            for (int s = 0; s < S; s++) {
                const int w = left + s;
                const float v = row && w >= 0 && w < W ? x[h * W + w] : 0.0f;
                const int tap = (c * (int)R + r) * (int)S + s;
#pragma unroll
                for (int i = 0; i < FILTERS; i++)
                    sum[i] = fmaf(v, f[i][tap], sum[i]);
            }
        }
    float *y = Y + (pixel / outs * K + k0) * outs + pixel % outs;
#pragma unroll
    for (int i = 0; i < FILTERS; i++)
        if (k0 + i < K)
            y[i * outs] = sum[i];
}
