/*---
launch:
  - entry: sum_rows
    grid: ceil_div(M, 256)
    block: 256
    args: [X, y, M, N]
---*/
/* The definition: a thread a row. */
extern "C" __global__ void sum_rows(const float *X, float *y, long long M, long long N)
{
    const long long m = blockIdx.x * 256ll + threadIdx.x;
    if (m >= M)
        return;
    float sum = 0;
    for (long long n = 0; n < N; n++)
        sum += X[m * N + n];
    y[m] = sum;
}
