/*---
launch:
  - entry: gelu_tanh_naive
    grid: ceil_div(M * N, 256)
    block: 256
    args: [X, Y, M, N]
---*/
/* The definition: a thread a number. */
extern "C" __global__ void gelu_tanh_naive(const float *X, float *Y, long long M, long long N)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < M * N) {
        const float x = X[i];
        Y[i] = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    }
}
