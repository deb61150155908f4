/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* failed does not compile */
extern "C" __global__ void scales(const float *x, float *y, long long n)
{
    y[0] = x[0] + (float)n;
}
