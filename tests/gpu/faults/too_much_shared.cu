/*---
launch:
  - {entry: scale, grid: "ceil_div(N, 256)", block: 256, shared: "shared_bytes_optin + 16", args: [X, Y, N]}
---*/
/* rejected scale: shared is */
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    y[0] = x[0] + (float)n;
}
