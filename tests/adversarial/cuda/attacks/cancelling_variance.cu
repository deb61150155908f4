/*---
launch:
  - entry: rows
    grid: M
    block: 256
    args: [X, Y, N]
---*/
/* variance as the mean of squares less the square of the mean, which cancels for large means */
static __device__ float sum_all(float v)
{
    __shared__ float part[256];
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

extern "C" __global__ void __launch_bounds__(256) rows(const float *X, float *Y, long long N)
{
    const float *x = X + blockIdx.x * N;
    float *y = Y + blockIdx.x * N;
    float sum = 0, squares = 0;
    for (long long n = threadIdx.x; n < N; n += 256) {
        sum += x[n];
        squares += x[n] * x[n];
    }
    const float mean = sum_all(sum) / (float)N;
    const float scale = 1.0f / sqrtf(sum_all(squares) / (float)N - mean * mean + 1e-5f);
    for (long long n = threadIdx.x; n < N; n += 256)
        y[n] = (x[n] - mean) * scale;
}
