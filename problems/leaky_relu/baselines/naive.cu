/*---
launch:
  - entry: leaky_relu_naive
    grid: ceil_div(M * N, 256)
    block: 256
    args: [X, Y, M, N]
---*/
/* The definition: a thread a number. */
extern "C" __global__ void leaky_relu_naive(const float *X, float *Y, long long M, long long N)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < M * N) {
        const float x = X[i];
        Y[i] = x > 0.0f ? x : 0.01f * x;
    }
}
