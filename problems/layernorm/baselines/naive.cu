/*---
launch:
  - entry: layernorm
    grid: M
    block: 256
    args: [X, gamma, beta, Y, N]
---*/
/* A block a row, and a pass over the row for each of mean, variance and result. */
static __device__ float sum_all(float v, float *part)
{
    __syncthreads();
    part[threadIdx.x] = v;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    return part[0];
}

extern "C" __global__ void __launch_bounds__(256)
    layernorm(const float *X, const float *gamma, const float *beta, float *Y, long long N)
{
    __shared__ float part[256];
    const float *x = X + blockIdx.x * N;
    float sum = 0, squares = 0;
    for (long long n = threadIdx.x; n < N; n += 256)
        sum += x[n];
    const float mean = sum_all(sum, part) / (float)N;
    for (long long n = threadIdx.x; n < N; n += 256)
        squares += (x[n] - mean) * (x[n] - mean);
    const float deviation = sqrtf(sum_all(squares, part) / (float)N + 1e-5f);
    for (long long n = threadIdx.x; n < N; n += 256)
        Y[blockIdx.x * N + n] = (x[n] - mean) / deviation * gamma[n] + beta[n];
}
