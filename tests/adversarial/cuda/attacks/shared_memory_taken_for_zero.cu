/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* adds into shared memory that nobody cleared */
extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    __shared__ float acc[16][16];
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    for (long long k = 0; k < K; k++)
        acc[threadIdx.y][threadIdx.x] += A[m * K + k] * B[k * N + n];
    C[m * N + n] = acc[threadIdx.y][threadIdx.x];
}
