/*---
launch:
  - entry: relu
    grid: ceil_div(M * N, 256)
    block: 256
    args: [X, Y, M, N]
---*/
/* The definition: a thread a number. */
extern "C" __global__ void relu(const float *X, float *Y, long long M, long long N)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < M * N)
        Y[i] = X[i] < 0.0f ? 0.0f : X[i];
}
