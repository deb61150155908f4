/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 1024)", block: 128, shared: 102400, args: [X, Y, N]}
---*/
/* limiter low occupancy
 * occupancy_most 0.12 0.13
 * occupancy 0.05 0.13 */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    extern __shared__ float room[];
    long long i = blockIdx.x * 1024ll + threadIdx.x;
    for (int k = 0; k < 8; k++, i += 128) {
        room[threadIdx.x] = i < n ? x[i] : 0.0f;
        __syncthreads();
        if (i < n)
            y[i] = fmaf(room[threadIdx.x], 3.0f, 1.0f);
        __syncthreads();
    }
}
