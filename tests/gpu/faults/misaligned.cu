/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* failed scale: misaligned address */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i + 4 < n)
        *(volatile double *)((char *)y + 4 * i + 1) = x[i];
}
