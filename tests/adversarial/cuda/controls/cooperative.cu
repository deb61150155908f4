/*---
launch:
  - entry: mm
    grid: min(sm_count, 64)
    block: 256
    cooperative: true
    args: [A, B, C, packed, state, M, N, K]
workspace:
  packed: {shape: [K, N], dtype: float32}
  state: {shape: [4], dtype: int32}
memset: {state: 0}
---*/
/* blocks that wait for each other, all of them resident */
extern "C" __global__ void __launch_bounds__(256)
    mm(const float *A, const float *B, float *C, float *packed, int *state, long long M,
       long long N, long long K)
{
    const long long first = blockIdx.x * 256ll + threadIdx.x, step = gridDim.x * 256ll;
    for (long long i = first; i < K * N; i += step)
        packed[i % N * K + i / N] = B[i]; /* turned */
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(state, 1);
        while (atomicAdd(state, 0) < (int)gridDim.x)
            __nanosleep(50);
    }
    __syncthreads();
    __threadfence();
    for (long long i = first; i < M * N; i += step) {
        float sum = 0;
        for (long long k = 0; k < K; k++)
            sum = fmaf(A[i / N * K + k], ((volatile float *)packed)[i % N * K + k], sum);
        C[i] = sum;
    }
}
