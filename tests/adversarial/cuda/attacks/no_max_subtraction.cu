/*---
launch:
  - entry: rows
    grid: M
    block: 256
    args: [X, Y, N]
---*/
/* softmax without the maximum: overflows for large inputs */
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
    float sum = 0;
    for (long long n = threadIdx.x; n < N; n += 256)
        sum += expf(x[n]);
    sum = sum_all(sum);
    for (long long n = threadIdx.x; n < N; n += 256)
        y[n] = expf(x[n]) / sum;
}
