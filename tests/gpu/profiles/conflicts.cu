/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 1024)", block: 1024, args: [X, Y, N]}
---*/
/* limiter bank conflicts
 * bank_conflict_share 0.6 1
 * sectors_per_load 3.9 4.1 */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    __shared__ float tile[1024];
    const int t = threadIdx.x, turned = t % 32 * 32 + t / 32;
    const long long i = blockIdx.x * 1024ll + t;
    float value = i < n ? x[i] : 0.0f;
    for (int k = 0; k < 32; k++) {
        tile[turned] = value;
        __syncwarp();
        value = tile[turned];
        __syncwarp();
    }
    if (i < n)
        y[i] = fmaf(value, 3.0f, 1.0f);
}
