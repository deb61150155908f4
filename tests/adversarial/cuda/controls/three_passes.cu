/*---
launch:
  - entry: rows
    grid: M
    block: 256
    args: [X, Y, N]
---*/
/* maximum, sum and result in three passes */
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

extern "C" __global__ void __launch_bounds__(256) rows(const float *X, float *Y, long long N)
{
    const float *x = X + blockIdx.x * N;
    float *y = Y + blockIdx.x * N;
    float most = x[0], sum = 0;
    for (long long n = threadIdx.x; n < N; n += 256)
        most = fmaxf(most, x[n]);
    most = most_of(most);
    for (long long n = threadIdx.x; n < N; n += 256)
        sum += expf(x[n] - most);
    sum = sum_all(sum);
    for (long long n = threadIdx.x; n < N; n += 256)
        y[n] = expf(x[n] - most) / sum;
}
