/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* failed scale */
__device__ __noinline__ int deep(int n, volatile int *at)
{
    volatile int frame[256];
    frame[n % 256] = *at;
    return n == 0 ? frame[0] : deep(n - 1, at) + frame[n % 256];
}
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    int seed = (int)x[0];
    y[threadIdx.x % n] = (float)deep(1000000 + seed % 2, &seed);
}
