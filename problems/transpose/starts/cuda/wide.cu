/*---
launch:
  - entry: transpose
    grid: ceil_div(M, TM) * ceil_div(N, TN)
    block: THREADS
    shared: 4 * TM * TN
    args: [A, B, M, N]
tune:
  TM: [64, 32, 128]
  TN: [64, 32, 128]
  THREADS: [128, 256, 64, 512]
  ORDER: [1, 0]
  RESIDENT: [1024, 1536, 2048]
  where: TM * TN >= 4 * THREADS && TM * TN <= 128 * THREADS && TM * TN <= 8192
---*/
/* Tiles of TM rows by TN columns in 16-byte accesses on both sides: a thread asks for all that it
 * reads, stores each four numbers into a tile that is turned already, and reads a row of that as a
 * vector. A warp takes 32 columns by 4 rows, and groups of four are swapped by their row: no two
 * lanes then meet in a bank. ORDER 1: neighbouring blocks lie below each other in A and beside each
 * other in B. RESIDENT threads of a multiprocessor have their registers. Matrices with rows that
 * are not aligned go by single numbers. */
#define VECTORS (TM * TN / 4 / THREADS)

/* Where number m of the tile's column n lies. */
static __device__ __forceinline__ int at(int n, int m)
{
    return n * TM + ((m / 4) ^ (n / 4 % 8)) * 4 + m % 4;
}

/* Vector i of a tile with rows of `width`: 8 lie side by side, 4 of those below each other. */
static __device__ __forceinline__ int column(int i, int width)
{
    return i / 32 % (width / 32) * 32 + i % 8 * 4;
}

static __device__ __forceinline__ int row(int i, int width)
{
    return i / 32 / (width / 32) * 4 + i / 8 % 4;
}

/* FULL: none of it is over the edge. Without a test in between all loads are under way at once. */
template <bool FULL>
static __device__ __forceinline__ void turn(const float *__restrict__ A, float *__restrict__ B,
                                            long long M, long long N, long long m0, long long n0,
                                            float *tile)
{
    float4 v[VECTORS] = {};
#pragma unroll
    for (int u = 0; u < VECTORS; u++) {
        const int i = (int)threadIdx.x + u * THREADS, n = column(i, TN), m = row(i, TN);
        if (FULL || (m0 + m < M && n0 + n < N))
            v[u] = *(const float4 *)(A + (m0 + m) * N + n0 + n);
    }
#pragma unroll
    for (int u = 0; u < VECTORS; u++) {
        const int i = (int)threadIdx.x + u * THREADS, n = column(i, TN), m = row(i, TN);
        tile[at(n, m)] = v[u].x;
        tile[at(n + 1, m)] = v[u].y;
        tile[at(n + 2, m)] = v[u].z;
        tile[at(n + 3, m)] = v[u].w;
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < VECTORS; u++) {
        const int i = (int)threadIdx.x + u * THREADS, m = column(i, TM), n = row(i, TM);
        if (FULL || (m0 + m < M && n0 + n < N))
            *(float4 *)(B + (n0 + n) * M + m0 + m) = *(const float4 *)&tile[at(n, m)];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
    transpose(const float *__restrict__ A, float *__restrict__ B, long long M, long long N)
{
    extern __shared__ __align__(16) float tile[];
    const unsigned across = (unsigned)((N + TN - 1) / TN), down = (unsigned)((M + TM - 1) / TM);
    const long long m0 = (ORDER ? blockIdx.x % down : blockIdx.x / across) * (long long)TM;
    const long long n0 = (ORDER ? blockIdx.x / down : blockIdx.x % across) * (long long)TN;
    const bool aligned = M % 4 == 0 && N % 4 == 0;
    if (aligned && m0 + TM <= M && n0 + TN <= N) {
        turn<true>(A, B, M, N, m0, n0, tile);
        return;
    }
    if (aligned) {
        turn<false>(A, B, M, N, m0, n0, tile);
        return;
    }
    for (int i = (int)threadIdx.x; i < TM * TN; i += THREADS)
        if (m0 + i / TN < M && n0 + i % TN < N)
            tile[at(i % TN, i / TN)] = A[(m0 + i / TN) * N + n0 + i % TN];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < TM * TN; i += THREADS)
        if (m0 + i % TM < M && n0 + i / TM < N)
            B[(n0 + i / TM) * M + m0 + i % TM] = tile[at(i / TM, i % TM)];
}
