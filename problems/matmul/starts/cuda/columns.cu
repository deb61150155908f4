/*---
launch:
  - entry: gemm
    grid: min(ceil_div(M, 8 * EACH), sm_count * RESIDENT) * ceil_div(N, COLUMNS)
    block: 256
    shared: 4 * COLUMNS * round_up(K, 128)
    args: [A, B, C, M, N, K]
tune:
  COLUMNS: [1, 2, 4]
  EACH: [4, 2, 1, 8]
  RESIDENT: [4, 2]
  where: N <= COLUMNS && N * 2 > COLUMNS && 4 * COLUMNS * round_up(K, 128) <= 232448
---*/
/* C = A B in float32 for a few columns: A is read once, as fast as it comes. Each warp has EACH
 * rows at a time; B is in shared memory, column by column. More columns are other blocks'. */

/* Four of a row, of which `left` are there: beside one another where rows are aligned, else 32
 * apart. */
template <bool WIDE>
static __device__ __forceinline__ float4 load(const float *from, int left)
{
    if (WIDE)
        return left > 0 ? __ldcs((const float4 *)from) : float4();
    return make_float4(left > 0 ? __ldcs(from) : 0, left > 32 ? __ldcs(from + 32) : 0,
                       left > 64 ? __ldcs(from + 64) : 0, left > 96 ? __ldcs(from + 96) : 0);
}

template <bool WIDE>
static __device__ __forceinline__ void add_up(float (&acc)[EACH][COLUMNS], const float *from,
                                              int rows, const float *b, int pitch, int K)
{
    const int first = threadIdx.x % 32 * (WIDE ? 4 : 1);
#pragma unroll 2
    for (int k = first; k < pitch; k += 128) {
        float4 a[EACH];
#pragma unroll
        for (int r = 0; r < EACH; r++)
            a[r] = load<WIDE>(from + r * (long long)K + k, r < rows ? K - k : 0);
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            const float *c = b + n * pitch + k;
            const float4 x = WIDE ? *(const float4 *)c : make_float4(c[0], c[32], c[64], c[96]);
#pragma unroll
            for (int r = 0; r < EACH; r++)
                acc[r][n] += a[r].x * x.x + a[r].y * x.y + a[r].z * x.z + a[r].w * x.w;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
    gemm(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C,
         long long M, long long N, long long K)
{
    extern __shared__ __align__(16) float memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int pitch = (int)((K + 127) / 128 * 128);
    const unsigned across = (unsigned)((N + COLUMNS - 1) / COLUMNS);
    const long long n0 = (long long)(blockIdx.x % across) * COLUMNS;
    const long long apart = gridDim.x / across * 8ll * EACH; /* of a warp's rows */
    for (int n = 0; n < COLUMNS; n++)
        for (int k = threadIdx.x; k < pitch; k += 256)
            memory[n * pitch + k] = n0 + n < N && k < K ? B[k * N + n0 + n] : 0;
    __syncthreads();
    for (long long m = (blockIdx.x / across * 8ll + warp) * EACH; m < M; m += apart) {
        float acc[EACH][COLUMNS] = {};
        const int rows = (int)min(M - m, (long long)EACH);
        if (K % 4 == 0)
            add_up<true>(acc, A + m * K, rows, memory, pitch, (int)K);
        else
            add_up<false>(acc, A + m * K, rows, memory, pitch, (int)K);
#pragma unroll
        for (int r = 0; r < EACH; r++)
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                float sum = acc[r][n];
#pragma unroll
                for (int d = 16; d > 0; d /= 2)
                    sum += __shfl_xor_sync(~0u, sum, d);
                if (lane == r * COLUMNS + n && r < rows && n0 + n < N)
                    C[(m + r) * N + n0 + n] = sum;
            }
    }
}
