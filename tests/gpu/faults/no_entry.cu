/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* failed the source has no extern "C" __global__ scale */
extern "C" __global__ void scales(const float *x, float *y, long long n)
{
    y[0] = x[0] + (float)n;
}
