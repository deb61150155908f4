/*---
launch:
  - entry: transpose
    grid: ceil_div(M, TILE) * ceil_div(N, TILE)
    block: TILE, ROWS
    args: [A, B, M, N]
tune:
  TILE: [32, 64]
  ROWS: [8, 4, 16]
---*/
/* Tiles of TILE x TILE through shared memory, so that both sides are read and written along rows; a
 * column more than the tile has keeps its columns in different banks. */
extern "C" __global__ void __launch_bounds__(TILE *ROWS, 1)
    transpose(const float *__restrict__ A, float *__restrict__ B, long long M, long long N)
{
    __shared__ float tile[TILE][TILE + 1];
    const unsigned across = (unsigned)((N + TILE - 1) / TILE);
    const long long m0 = blockIdx.x / across * (long long)TILE,
                    n0 = blockIdx.x % across * (long long)TILE;
    const int x = threadIdx.x, y = threadIdx.y;
#pragma unroll
    for (int i = 0; i < TILE; i += ROWS)
        if (m0 + y + i < M && n0 + x < N)
            tile[y + i][x] = __ldcs(A + (m0 + y + i) * N + n0 + x);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; i += ROWS)
        if (n0 + y + i < N && m0 + x < M)
            __stcs(B + (n0 + y + i) * M + m0 + x, tile[x][y + i]);
}
