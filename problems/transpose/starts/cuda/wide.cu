/*---
launch:
  - entry: transpose
    grid: ceil_div(M, TILE) * ceil_div(N, TILE)
    block: THREADS
    shared: 4 * TILE * TILE
    args: [A, B, M, N]
tune:
  TILE: [64, 32, 128]
  THREADS: [128, 256, 64, 512]
  ORDER: [1, 0]
  STREAM: [0, 1]
  where: TILE * TILE >= 4 * THREADS
---*/
/* Tiles of TILE x TILE in 16-byte accesses on both sides: a thread stores the four numbers that it
 * read into a tile that is turned already, and reads a row of that as a vector. A warp takes 32
 * columns by 4 rows, and groups of four are swapped by their row: no two lanes then meet in a bank.
 * ORDER 1: neighbouring blocks lie below each other in A and beside each other in B. With STREAM
 * the caches are told that nothing is read again. Matrices with rows that are not aligned go by
 * single numbers. */
#define GROUPS (TILE / 4)

/* Where number m of the tile's column n lies. */
static __device__ __forceinline__ int at(int n, int m)
{
    return n * TILE + ((m / 4) ^ (n / 4 % 8)) * 4 + m % 4;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    transpose(const float *__restrict__ A, float *__restrict__ B, long long M, long long N)
{
    extern __shared__ __align__(16) float tile[];
    const unsigned across = (unsigned)((N + TILE - 1) / TILE),
                   down = (unsigned)((M + TILE - 1) / TILE);
    const long long m0 = (ORDER ? blockIdx.x % down : blockIdx.x / across) * (long long)TILE;
    const long long n0 = (ORDER ? blockIdx.x / down : blockIdx.x % across) * (long long)TILE;
    const bool wide = M % 4 == 0 && N % 4 == 0;
    if (wide) {
#pragma unroll
        for (int i = threadIdx.x; i < TILE * GROUPS; i += THREADS) {
            const int n = i / 32 % (TILE / 32) * 32 + i % 8 * 4, m = i / TILE * 4 + i / 8 % 4;
            if (m0 + m < M && n0 + n < N) {
                const float4 *from = (const float4 *)(A + (m0 + m) * N + n0 + n);
                const float4 v = STREAM ? __ldcs(from) : *from;
                tile[at(n, m)] = v.x;
                tile[at(n + 1, m)] = v.y;
                tile[at(n + 2, m)] = v.z;
                tile[at(n + 3, m)] = v.w;
            }
        }
    } else {
        for (int i = threadIdx.x; i < TILE * TILE; i += THREADS)
            if (m0 + i / TILE < M && n0 + i % TILE < N)
                tile[at(i % TILE, i / TILE)] = A[(m0 + i / TILE) * N + n0 + i % TILE];
    }
    __syncthreads();
    if (wide) {
#pragma unroll
        for (int i = threadIdx.x; i < TILE * GROUPS; i += THREADS) {
            const int m = i / 32 % (TILE / 32) * 32 + i % 8 * 4, n = i / TILE * 4 + i / 8 % 4;
            float4 *to = (float4 *)(B + (n0 + n) * M + m0 + m);
            const float4 v = *(const float4 *)&tile[at(n, m)];
            if (m0 + m >= M || n0 + n >= N)
                continue;
            if (STREAM)
                __stcs(to, v);
            else
                *to = v;
        }
    } else {
        for (int i = threadIdx.x; i < TILE * TILE; i += THREADS)
            if (m0 + i % TILE < M && n0 + i / TILE < N)
                B[(n0 + i / TILE) * M + m0 + i % TILE] = tile[at(i / TILE, i % TILE)];
    }
}
