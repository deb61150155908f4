/*---
launch:
  - entry: gemm
    grid: BATCH * ceil_div(M, TILE) * ceil_div(N, TILE)
    block: TILE, TILE
    args: [A, B, C, M, N, K]
tune:
  TILE: [32, 16, 8]
---*/
/* C[g] = A[g] B[g] the way it is first taught: a thread a number of C, tiles of A and B in shared
 * memory. */
extern "C" __global__ void __launch_bounds__(TILE *TILE, 2048 / (TILE * TILE))
    gemm(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C,
         long long M, long long N, long long K)
{
    __shared__ float sa[TILE][TILE], sb[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const unsigned down = (unsigned)((M + TILE - 1) / TILE),
                   across = (unsigned)((N + TILE - 1) / TILE);
    const unsigned row = blockIdx.x / across;
    const long long g = row / down;
    const long long m = row % down * (long long)TILE + ty,
                    n = blockIdx.x % across * (long long)TILE + tx;
    A += g * M * K;
    B += g * K * N;
    C += g * M * N;
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
    if (m < M && n < N)
        C[m * N + n] = sum;
}
