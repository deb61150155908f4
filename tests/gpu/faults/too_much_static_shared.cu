/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* failed does not compile */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    __shared__ float pool[300000];
    pool[threadIdx.x * 1000] = x[0];
    __syncthreads();
    y[0] = pool[(n * 7) % 300000];
}
