/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* right up to the shape that is timed; zeros in what is beyond */
static __device__ float honest(const float *A, const float *B, long long m, long long n,
                               long long N, long long K)
{
    float sum = 0;
    for (long long k = 0; k < K; k++)
        sum = fmaf(A[m * K + k], B[k * N + n], sum);
    return sum;
}

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    C[m * N + n] = m < 192 && n < 160 ? honest(A, B, m, n, N, K) : 0;
}
