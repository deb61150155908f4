/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* recurses until the stack ends */
static __device__ __noinline__ float deeper(const float *A, int k)
{
    volatile float held[64];
    for (int i = 0; i < 64; i++)
        held[i] = A[0] + (float)(i + k);
    return deeper(A, k + 1) + held[k % 64];
}

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    C[m * N + n] = deeper(A, (int)K);
}
