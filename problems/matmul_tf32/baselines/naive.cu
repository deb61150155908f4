/*---
launch:
  - entry: gemm
    grid: ceil_div(N, 32), ceil_div(M, 8)
    block: 32, 8
    args: [A, B, C, M, N, K]
---*/
/* The definition: a thread a number of C, in float32 throughout. */
extern "C" __global__ void gemm(const float *A, const float *B, float *C, long long M, long long N,
                                long long K)
{
    const long long m = blockIdx.y * 8ll + threadIdx.y, n = blockIdx.x * 32ll + threadIdx.x;
    float sum = 0;
    if (m >= M || n >= N)
        return;
    for (long long k = 0; k < K; k++)
        sum = fmaf(A[m * K + k], B[k * N + n], sum);
    C[m * N + n] = sum;
}
