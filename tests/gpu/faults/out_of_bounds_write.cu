/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* rejected wrote out of bounds, after the end of Y */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i < n)
        y[i] = fmaf(x[i], 3.0f, 1.0f);
    if (i == n - 1)
        y[n + 5] = 1.0f;
}
