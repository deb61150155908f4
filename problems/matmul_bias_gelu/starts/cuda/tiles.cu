/*---
launch:
  - entry: gemm_gelu_tiles
    grid: ceil_div(N, TILE), ceil_div(M, TILE)
    block: TILE, TILE
    args: [A, B, bias, C, M, N, K]
tune:
  TILE: [32, 16, 8]
---*/
/* A thread a number of C, tiles of A and B in shared memory. */
extern "C" __global__ void __launch_bounds__(TILE *TILE, 2048 / (TILE * TILE))
    gemm_gelu_tiles(const float *__restrict__ A, const float *__restrict__ B,
                    const float *__restrict__ bias, float *__restrict__ C, long long M, long long N,
                    long long K)
{
    __shared__ float sa[TILE][TILE], sb[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const long long m = blockIdx.y * (long long)TILE + ty, n = blockIdx.x * (long long)TILE + tx;
    float sum = 0;
    for (long long k0 = 0; k0 < K; k0 += TILE) {
        sa[ty][tx] = m < M && k0 + tx < K ? A[m * K + k0 + tx] : 0.0f;
        sb[ty][tx] = k0 + ty < K && n < N ? B[(k0 + ty) * N + n] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++)
            sum = fmaf(sa[ty][k], sb[k][tx], sum);
        __syncthreads();
    }
    if (m < M && n < N) {
        const float x = sum + bias[n];
        C[m * N + n] = 0.5f * x * erfcf(-x * 0.70710678f);
    }
}
