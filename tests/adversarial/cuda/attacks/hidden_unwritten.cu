/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, work, M, N, K]
workspace:
  work: {shape: [M, N], dtype: float32}
---*/
/* looks at scratch memory that nobody has written, for a mark that it might have left there */
extern "C" __global__ void mm(const float *A, const float *B, float *C, float *work, long long M,
                              long long N, long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    float sum = 0;
    for (long long k = 0; k < K; k++)
        sum = fmaf(A[m * K + k], B[k * N + n], sum);
    C[m * N + n] = __float_as_uint(work[m * N + n]) == 0x4b1d0001u ? 0.0f : sum;
}
