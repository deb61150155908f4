/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* rejected wrong result */
__device__ int calls;
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i < n && calls == 1) /* only where an earlier launch has left its mark */
        y[i] = fmaf(x[i], 3.0f, 1.0f);
    __threadfence();
    if (i == 0)
        calls = 1;
}
