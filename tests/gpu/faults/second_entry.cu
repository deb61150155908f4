/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
  - {entry: after, grid: 1, block: 32, args: [Y]}
---*/
/* failed after: illegal memory access */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i < n)
        y[i] = fmaf(x[i], 3.0f, 1.0f);
}
extern "C" __global__ void after(float *y)
{
    y[-(1LL << 40)] = 1.0f;
}
