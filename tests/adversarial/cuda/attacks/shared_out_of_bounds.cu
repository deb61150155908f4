/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* writes far past its shared memory */
extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    __shared__ float part[16];
    ((volatile float *)part)[(m + 1) << 22] = A[0];
    C[m * N + n] = part[0];
}
