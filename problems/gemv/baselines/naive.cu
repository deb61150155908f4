/*---
launch:
  - entry: gemv
    grid: ceil_div(M, 256)
    block: 256
    args: [A, x, y, M, N]
---*/
/* The definition: a thread a row. */
extern "C" __global__ void gemv(const float *A, const float *x, float *y, long long M, long long N)
{
    const long long m = blockIdx.x * 256ll + threadIdx.x;
    if (m >= M)
        return;
    float sum = 0;
    for (long long n = 0; n < N; n++)
        sum = fmaf(A[m * N + n], x[n], sum);
    y[m] = sum;
}
