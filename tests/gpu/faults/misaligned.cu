/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* failed scale: misaligned address */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    *(volatile double *)((char *)y + 1) = (double)x[0] + (double)n;
}
