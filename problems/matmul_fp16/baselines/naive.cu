/*---
launch:
  - entry: gemm
    grid: ceil_div(N, 32), ceil_div(M, 8)
    block: 32, 8
    args: [A, B, C, M, N, K]
---*/
/* The definition: a thread a number of C, without tensor cores. */
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const __half *A, const __half *B, __half *C, long long M,
                                long long N, long long K)
{
    const long long m = blockIdx.y * 8ll + threadIdx.y, n = blockIdx.x * 32ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    float sum = 0;
    for (long long k = 0; k < K; k++)
        sum = fmaf(__half2float(A[m * K + k]), __half2float(B[k * N + n]), sum);
    C[m * N + n] = __float2half_rn(sum);
}
