/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* sectors_per_load 3.9 4.1
 * sectors_per_store 3.9 4.1
 * local_sectors 0 0
 * occupancy_most 1 1
 * dram_of_needed 0.9 1.25
 * threads_per_instruction 31 32 */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < n)
        y[i] = fmaf(x[i], 3.0f, 1.0f);
}
