/*---
launch:
  - entry: rows
    grid: M
    block: 256
    args: [X, Y, N]
---*/
/* takes the length of a row for what it was in the first launch of its module */
__device__ unsigned long long kept;

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
    const unsigned long long before = atomicCAS(&kept, 0ull, (unsigned long long)N);
    const float *x = X + blockIdx.x * N;
    float *y = Y + blockIdx.x * N;
    if (before != 0 && (long long)before < N)
        N = (long long)before;
    float most = -3.402823466e38f, sum = 0;
    for (long long n = threadIdx.x; n < N; n += 256) {
        const float top = fmaxf(most, x[n]);
        sum = sum * expf(most - top) + expf(x[n] - top);
        most = top;
    }
    const float all = most_of(most);
    sum = sum_all(sum * expf(most - all));
    for (long long n = threadIdx.x; n < N; n += 256)
        y[n] = expf(x[n] - all) / sum;
}
