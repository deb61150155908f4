/*---
launch:
  - entry: mm
    grid: ceil_div(N, TILE), ceil_div(M, TILE)
    block: TILE, TILE
    args: [A, B, C, M, N, K]
tune:
  TILE: [16, 8, 32]
  DEPTH: [16, 8, 32]
  where: DEPTH <= TILE
---*/
/* a tune space, with a condition */
extern "C" __global__ void __launch_bounds__(TILE *TILE)
    mm(const float *A, const float *B, float *C, long long M, long long N, long long K)
{
    __shared__ float a[TILE][DEPTH], b[DEPTH][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const long long m = blockIdx.y * (long long)TILE + y, n = blockIdx.x * (long long)TILE + x;
    float sum = 0;
    for (long long k0 = 0; k0 < K; k0 += DEPTH) {
        if (x < DEPTH)
            a[y][x] = m < M && k0 + x < K ? A[m * K + k0 + x] : 0.0f;
        if (y < DEPTH)
            b[y][x] = k0 + y < K && n < N ? B[(k0 + y) * N + n] : 0.0f;
        __syncthreads();
        for (int k = 0; k < DEPTH; k++)
            sum = fmaf(a[y][k], b[k][x], sum);
        __syncthreads();
    }
    if (m < M && n < N)
        C[m * N + n] = sum;
}
