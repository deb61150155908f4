/*---
launch:
  - entry: reference
    grid: ceil_div(N, 32), ceil_div(M, 32)
    block: 32, 32
    args: [A, B, M, N]
---*/
/* The definition in float64, for shapes at which numpy takes its time. */
extern "C" __global__ void reference(const double *A, double *B, long long M, long long N)
{
    const long long n = blockIdx.x * 32ll + threadIdx.x, m = blockIdx.y * 32ll + threadIdx.y;
    if (m < M && n < N)
        B[n * M + m] = A[m * N + n];
}
