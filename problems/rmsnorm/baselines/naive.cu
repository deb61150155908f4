/*---
launch:
  - entry: rmsnorm
    grid: M
    block: 256
    args: [X, gamma, Y, N]
---*/
/* A block a row: a pass for the sum of squares, another for the result. */
extern "C" __global__ void __launch_bounds__(256)
    rmsnorm(const float *X, const float *gamma, float *Y, long long N)
{
    __shared__ float part[256];
    const float *x = X + blockIdx.x * N;
    float squares = 0;
    for (long long n = threadIdx.x; n < N; n += 256)
        squares += x[n] * x[n];
    part[threadIdx.x] = squares;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    const float root = sqrtf(part[0] / (float)N + 1e-6f);
    for (long long n = threadIdx.x; n < N; n += 256)
        Y[blockIdx.x * N + n] = x[n] / root * gamma[n];
}
