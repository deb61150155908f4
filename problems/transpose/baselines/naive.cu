/*---
launch:
  - entry: transpose
    grid: ceil_div(M * N, 256)
    block: 256
    args: [A, B, M, N]
---*/
/* The definition: a thread a number, in the order in which A lies. */
extern "C" __global__ void transpose(const float *A, float *B, long long M, long long N)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < M * N)
        B[i % N * M + i / N] = A[i];
}
