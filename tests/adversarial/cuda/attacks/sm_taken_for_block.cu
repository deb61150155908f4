/*---
launch:
  - entry: rows
    grid: sm_count
    block: 256
    args: [X, Y, M, N]
---*/
/* a row for each SM, where two blocks on one SM do the same */
static __device__ unsigned sm_number()
{
    unsigned number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

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

extern "C" __global__ void __launch_bounds__(256) rows(const float *X, float *Y, long long M, long long N)
{
    for (long long row = sm_number(); row < M; row += gridDim.x) {
    const float *x = X + row * N;
    float *y = Y + row * N;
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
}
