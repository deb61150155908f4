/*---
launch:
  - entry: gemm_gelu
    grid: ceil_div(N, 32), ceil_div(M, 32)
    block: 32, 32
    args: [A, B, bias, C, M, N, K]
---*/
/* A thread a number of C, tiles in shared memory. */
extern "C" __global__ void __launch_bounds__(1024, 2)
    gemm_gelu(const float *__restrict__ A, const float *__restrict__ B,
              const float *__restrict__ bias, float *__restrict__ C, long long M, long long N,
              long long K)
{
    __shared__ float sa[32][32], sb[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const long long m = blockIdx.y * 32ll + ty, n = blockIdx.x * 32ll + tx;
    float sum = 0;
    for (long long k0 = 0; k0 < K; k0 += 32) {
        sa[ty][tx] = m < M && k0 + tx < K ? A[m * K + k0 + tx] : 0.0f;
        sb[ty][tx] = k0 + ty < K && n < N ? B[(k0 + ty) * N + n] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++)
            sum = fmaf(sa[ty][k], sb[k][tx], sum);
        __syncthreads();
    }
    if (m < M && n < N) {
        const float x = sum + bias[n];
        C[m * N + n] = 0.5f * x * erfcf(-x * 0.70710678f);
    }
}
