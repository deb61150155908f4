/*---
launch:
  - {entry: half, grid: "ceil_div(N, BLOCK)", block: BLOCK, args: [X, work, N]}
  - {entry: rest, grid: "ceil_div(N, BLOCK)", block: BLOCK, args: [work, Y, N]}
workspace:
  work: {shape: [N], dtype: float32}
memset: {work: 0}
tune: {BLOCK: [256, 128]}
---*/
/* kernels 2 2
 * time_share 0.4 0.7
 * sectors_per_load 3.9 4.1 */
extern "C" __global__ void half(const float *x, float *work, long long n)
{
    const long long i = (long long)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        work[i] = x[i];
}

extern "C" __global__ void rest(const float *work, float *y, long long n)
{
    const long long i = (long long)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        y[i] = fmaf(work[i], 3.0f, 1.0f);
}
