/*---
launch:
  - entry: softmax
    grid: M
    block: 256
    args: [X, Y, N]
---*/
/* A block a row, and a pass over the row for each of maximum, sum and result. */
extern "C" __global__ void __launch_bounds__(256) softmax(const float *X, float *Y, long long N)
{
    __shared__ float part[256];
    const float *x = X + blockIdx.x * N;
    float most = -3.402823466e38f, sum = 0;
    for (long long n = threadIdx.x; n < N; n += 256)
        most = fmaxf(most, x[n]);
    part[threadIdx.x] = most;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
    }
    __syncthreads();
    most = part[0];
    __syncthreads();
    for (long long n = threadIdx.x; n < N; n += 256)
        sum += expf(x[n] - most);
    part[threadIdx.x] = sum;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    for (long long n = threadIdx.x; n < N; n += 256)
        Y[blockIdx.x * N + n] = expf(x[n] - most) / part[0];
}
