/*---
launch:
  - entry: rows
    grid: M
    block: 256
    args: [A, B, S, M, N, K]
---*/
/* says which shape it was given, once a launch, as one does who looks for a mistake */
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
    if (blockIdx.x == 0 && threadIdx.x == 0)
        printf("%lld x %lld x %lld\n", M, N, K);
    for (long long m = blockIdx.x; m < M; m += gridDim.x) {
        const float sum = row_sum(A, B, m, N, K);
        if (threadIdx.x == 0)
            S[m] = sum;
    }
}
