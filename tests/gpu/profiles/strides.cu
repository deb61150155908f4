/*---
launch:
  - {entry: scale, grid: "ceil_div(ceil_div(N, 1024) * 1024, 256)", block: 256, args: [X, Y, N]}
---*/
/* limiter uncoalesced loads
 * sectors_per_load 28 32
 * sectors_per_store 28 32 */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x, rows = (n + 1023) / 1024;
    const long long at = i % rows * 1024 + i / rows;
    if (at < n)
        y[at] = fmaf(x[at], 3.0f, 1.0f);
}
