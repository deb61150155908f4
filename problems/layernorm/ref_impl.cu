/*---
launch:
  - entry: reference
    grid: M
    block: 256
    args: [X, gamma, beta, Y, N]
---*/
/* The definition in float64, for shapes at which numpy takes its time: a block a row. */
static __device__ double all(double mine)
{
    __shared__ double part[256];
    __syncthreads();
    part[threadIdx.x] = mine;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    return part[0];
}

extern "C" __global__ void __launch_bounds__(256)
    reference(const double *X, const double *gamma, const double *beta, double *Y, long long N)
{
    const double *x = X + blockIdx.x * N;
    double mean = 0, variance = 0;
    for (long long n = threadIdx.x; n < N; n += 256)
        mean += x[n];
    mean = all(mean) / (double)N;
    for (long long n = threadIdx.x; n < N; n += 256)
        variance += (x[n] - mean) * (x[n] - mean);
    variance = all(variance) / (double)N;
    for (long long n = threadIdx.x; n < N; n += 256)
        Y[blockIdx.x * N + n] = (x[n] - mean) / sqrt(variance + 1e-5) * gamma[n] + beta[n];
}
