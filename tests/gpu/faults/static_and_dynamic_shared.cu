/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, shared: shared_bytes_optin, args: [X, Y, N]}
---*/
/* failed scale: cannot have */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    __shared__ float more[1024];
    more[threadIdx.x] = x[0];
    __syncthreads();
    y[0] = more[(n * 7) % 1024];
}
