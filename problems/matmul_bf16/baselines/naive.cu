/*---
launch:
  - entry: gemm
    grid: ceil_div(N, 32), ceil_div(M, 8)
    block: 32, 8
    args: [A, B, C, M, N, K]
---*/
/* The definition: a thread a number of C, without tensor cores. */
#include <cuda_bf16.h>

extern "C" __global__ void gemm(const __nv_bfloat16 *A, const __nv_bfloat16 *B, __nv_bfloat16 *C,
                                long long M, long long N, long long K)
{
    const long long m = blockIdx.y * 8ll + threadIdx.y, n = blockIdx.x * 32ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    float sum = 0;
    for (long long k = 0; k < K; k++)
        sum = fmaf(__bfloat162float(A[m * K + k]), __bfloat162float(B[k * N + n]), sum);
    C[m * N + n] = __float2bfloat16_rn(sum);
}
