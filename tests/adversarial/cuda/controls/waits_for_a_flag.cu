/*---
workspace:
  sums: {shape: [M], dtype: float32}
  flags: {shape: [M], dtype: int32}
memset: {flags: 0}
launch:
  - entry: rows
    grid: 2 * min(M, sm_count)
    block: 256
    cooperative: true
    args: [X, S, T, sums, flags, M, N]
---*/
/* a block waits until its neighbour says that its part is there */
extern "C" __global__ void __launch_bounds__(256)
    rows(const float *X, float *S, float *T, float *sums, int *flags, long long M, long long N)
{
    __shared__ float part[256], most[256];
    for (long long row = blockIdx.x / 2; row < M; row += gridDim.x / 2) {
        float v = 0, top = X[row * N];
        for (long long n = blockIdx.x % 2 * 256 + threadIdx.x; n < N; n += 512)
            v += X[row * N + n];
        for (long long n = threadIdx.x; n < N; n += 256)
            top = fmaxf(top, X[row * N + n]);
        part[threadIdx.x] = v;
        most[threadIdx.x] = top;
        for (int half = 128; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half) {
                part[threadIdx.x] += part[threadIdx.x + half];
                most[threadIdx.x] = fmaxf(most[threadIdx.x], most[threadIdx.x + half]);
            }
        }
        if (threadIdx.x == 0 && blockIdx.x % 2 == 1) {
            ((volatile float *)sums)[row] = part[0];
            __threadfence();
            atomicExch(flags + row, 1);
        } else if (threadIdx.x == 0) {
            while (atomicAdd(flags + row, 0) == 0)
                ;
            __threadfence();
            S[row] = part[0] + ((volatile float *)sums)[row];
            T[row] = most[0];
        }
        __syncthreads();
    }
}
