/*---
launch:
  - entry: rows
    grid: min(sm_count, 64)
    block: 256
    cooperative: true
    args: [A, B, S, M, N, K]
---*/
/* blocks meet at the driver's own barrier, in the workspace of a cooperative launch */
#include <cooperative_groups.h>

/* A row's sum, by the 256 threads of a block. */
static __device__ float row_sum(const float *A, const float *B, long long m, long long N,
                                long long K)
{
    __shared__ float part[256];
    float own = 0;
    for (long long n = threadIdx.x; n < N; n += 256) {
        float sum = 0;
        for (long long k = 0; k < K; k++)
            sum = fmaf(A[m * K + k], B[k * N + n], sum);
        own += sum;
    }
    __syncthreads();
    part[threadIdx.x] = own;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    return part[0];
}

extern "C" __global__ void __launch_bounds__(256)
    rows(const float *A, const float *B, float *S, long long M, long long N, long long K)
{
    for (long long m = blockIdx.x; m < M; m += gridDim.x)
        if (threadIdx.x == 0)
            S[m] = 0;
    cooperative_groups::this_grid().sync();
    for (long long m = blockIdx.x; m < M; m += gridDim.x) {
        const float sum = row_sum(A, B, m, N, K);
        if (threadIdx.x == 0)
            S[m] += sum;
    }
}
