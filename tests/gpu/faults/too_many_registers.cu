/*---
launch:
  - {entry: scale, grid: 1, block: 1024, args: [X, Y, N]}
---*/
/* failed scale: a block of 1024 threads */
extern "C" __global__ void __launch_bounds__(256, 1) scale(const float *x, float *y, long long n)
{
    float r[160];
#pragma unroll
    for (int i = 0; i < 160; i++)
        r[i] = x[i % n];
    for (long long k = 0; k < n; k++)
#pragma unroll
        for (int i = 0; i < 160; i++)
            r[i] = fmaf(r[i], x[k], r[(i + 1) % 160]);
#pragma unroll
    for (int i = 0; i < 160; i++)
        y[i % n] = r[i];
}
