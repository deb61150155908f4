/*---
workspace:
  much: {shape: [N, 100000], dtype: float32}
launch:
  - {entry: scale, grid: 1, block: 128, args: [X, Y, much, N]}
---*/
/* rejected tensors and workspaces need */
extern "C" __global__ void scale(const float *x, float *y, float *much, long long n)
{
    y[0] = x[0] + much[0] + (float)n;
}
