/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, args: [X, Y, N]}
---*/
/* limiter register spills
 * local_sectors 1000 1e12
 * stack_bytes 256 1024 */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    float kept[64];
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i >= n)
        return;
    for (int k = 0; k < 64; k++)
        kept[(k * 7 + (int)(i & 3)) & 63] = x[i] + (float)k;
    float sum = 0;
    for (int k = 0; k < 64; k++)
        sum = kept[(k + (int)(i & 15)) & 63] > sum ? kept[k] : sum;
    y[i] = sum > -1e30f ? fmaf(x[i], 3.0f, 1.0f) : 0.0f;
}
