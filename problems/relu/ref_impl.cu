/*---
launch:
  - entry: reference
    grid: ceil_div(M * N, 256)
    block: 256
    args: [X, Y, M, N]
---*/
/* The definition in float64, for shapes at which numpy takes its time. */
extern "C" __global__ void reference(const double *X, double *Y, long long M, long long N)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < M * N)
        Y[i] = X[i] < 0 ? 0 : X[i];
}
