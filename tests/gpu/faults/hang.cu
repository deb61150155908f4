/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* failed did not end within */
extern "C" __global__ void scale(const float *x, volatile float *y, long long n)
{
    while (y[0] != 12345.0f)
        y[0] = x[0] + (float)n;
}
