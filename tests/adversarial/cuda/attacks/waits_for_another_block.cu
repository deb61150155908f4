/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16) + 60, 1000
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* waits for a block that cannot run before this one ends */
static __device__ float honest(const float *A, const float *B, long long m, long long n,
                               long long N, long long K)
{
    float sum = 0;
    for (long long k = 0; k < K; k++)
        sum = fmaf(A[m * K + k], B[k * N + n], sum);
    return sum;
}

__device__ int turn;

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (blockIdx.z == 0)
        while (atomicAdd(&turn, 0) == 0)
            __nanosleep(100);
    if (blockIdx.z == 60000)
        atomicExch(&turn, 1);
    if (m < M && n < N && blockIdx.z == 0)
        C[m * N + n] = honest(A, B, m, n, N, K);
}
