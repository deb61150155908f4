/*---
launch:
  - entry: rows
    grid: M
    block: 256
    args: [A, B, S, M, N, K]
---*/
/* The plain loops, a block a row: what an attack may not be faster than. */
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
    const float sum = row_sum(A, B, blockIdx.x, N, K);
    if (threadIdx.x == 0)
        S[blockIdx.x] = sum;
}
