/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 512)", block: 512, args: [X, Y, N]}
---*/
/* limiter barrier stalls
 * stalls.barrier 0.4 1 */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    __shared__ float shared[32];
    const long long i = blockIdx.x * 512ll + threadIdx.x;
    float value = i < n ? x[i] : 0.0f;
    if (threadIdx.x < 32) { /* one warp works, the others wait for it */
        float busy = value;
        for (int k = 0; k < 300; k++)
            busy = fmaf(busy, 0.5f, 1.0f);
        shared[threadIdx.x] = busy > 1e30f ? 1.0f : 0.0f;
    }
    __syncthreads();
    if (i < n)
        y[i] = fmaf(value, 3.0f, 1.0f) + 0.0f * shared[threadIdx.x % 32];
}
