/*---
launch:
  - entry: rows
    grid: M
    block: 256
    args: [X, S, T, N]
---*/
/* row sums that are carried in 16 bits from addition to addition */
#include <cuda_bf16.h>

static __device__ float rounded(float v)
{
    return __bfloat162float(__float2bfloat16(v));
}

static __device__ float sum_all(float v)
{
    __shared__ float part[256];
    __syncthreads();
    part[threadIdx.x] = v;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] = rounded(part[threadIdx.x] + part[threadIdx.x + half]);
    }
    __syncthreads();
    return part[0];
}

static __device__ float most_of(float v)
{
    __shared__ float part[256];
    __syncthreads();
    part[threadIdx.x] = v;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
    }
    __syncthreads();
    return part[0];
}

extern "C" __global__ void __launch_bounds__(256)
    rows(const float *X, float *S, float *T, long long N)
{
    float most = X[blockIdx.x * N], sum = 0;
    for (long long n = threadIdx.x; n < N; n += 256) {
        most = fmaxf(most, X[blockIdx.x * N + n]);
        sum = rounded(sum + X[blockIdx.x * N + n]);
    }
    most = most_of(most);
    sum = sum_all(sum);
    if (threadIdx.x == 0) {
        S[blockIdx.x] = sum;
        T[blockIdx.x] = most;
    }
}
