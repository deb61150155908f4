/*---
launch:
  - entry: gemm
    grid: ceil_div(N, 128) * ceil_div(M, ROWS) * SPLIT
    cluster: SPLIT
    block: 512
    shared: 4 * ROWS * (max(round_up(ceil_div(K, SPLIT), 8), 2048) + 128)
    args: [A, B, C, M, N, K]
tune:
  ROWS: [1, 2, 4]
  SPLIT: [1, 2, 4, 8]
  AHEAD: [8, 4]
  where: >
    M <= ROWS && M * 2 > ROWS && (SPLIT == 1 || K >= SPLIT * 128)
    && 4 * ROWS * (max(round_up(ceil_div(K, SPLIT), 8), 2048) + 128) <= 232448
---*/
/* C = A B in float32 for a few rows: B is read once, as fast as it comes. Lanes have four columns
 * each, warps share out K, and so do the SPLIT blocks of a cluster. More rows are other blocks'. */
#define WARPS 16

/* Four columns of a row of B: beside one another where rows are aligned, else 32 apart. */
template <bool WIDE>
static __device__ __forceinline__ void load(float (&b)[4], const float *from, int columns, bool in)
{
    if (WIDE) {
        const float4 four = in && columns > 0 ? __ldcs((const float4 *)from) : float4();
        b[0] = four.x, b[1] = four.y, b[2] = four.z, b[3] = four.w;
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++)
            b[e] = in && 32 * e < columns ? __ldcs(from + 32 * e) : 0;
    }
}

/* a: this block's part of A's rows, `pitch` numbers apart. */
template <bool WIDE>
static __device__ __forceinline__ void add_up(float (&acc)[ROWS][4], const float *a, int pitch,
                                              const float *from, int columns, int count,
                                              long long N)
{
    for (int k = threadIdx.x / 32 * AHEAD; k < count; k += WARPS * AHEAD) {
        float b[AHEAD][4];
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            load<WIDE>(b[j], from + (k + j) * N, columns, k + j < count);
#pragma unroll
        for (int m = 0; m < ROWS; m++)
#pragma unroll
            for (int j = 0; j < AHEAD; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    acc[m][e] += a[m * pitch + k + j] * b[j][e];
    }
}

extern "C" __global__ void __launch_bounds__(512)
    gemm(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C,
         long long M, long long N, long long K)
{
    extern __shared__ __align__(16) float memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rank = blockIdx.x % SPLIT;
    const unsigned across = (unsigned)((N + 127) / 128), tile = blockIdx.x / SPLIT;
    const long long n0 = tile % across * 128ll, m0 = (long long)(tile / across) * ROWS;
    const int part = (int)((K + SPLIT - 1) / SPLIT), pitch = (part + 7) / 8 * 8;
    const long long begin = (long long)rank * part;
    const int count = (int)max(min(K - begin, (long long)part), 0ll);
    A += m0 * K, C += m0 * N, M -= m0;
    float *total = memory + ROWS * max(pitch, WARPS * 128);
    for (int m = 0; m < ROWS; m++)
        for (int k = threadIdx.x; k < pitch; k += 512)
            memory[m * pitch + k] = m < M && k < count ? A[m * K + begin + k] : 0;
    __syncthreads();
    float acc[ROWS][4] = {};
    const bool wide = N % 4 == 0;
    const int first = wide ? 4 * lane : lane, apart = wide ? 1 : 32;
    const float *from = B + begin * N + n0 + first;
    if (wide)
        add_up<true>(acc, memory, pitch, from, (int)min(N - n0, 128ll) - first, count, N);
    else
        add_up<false>(acc, memory, pitch, from, (int)min(N - n0, 128ll) - first, count, N);
    __syncthreads();
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            memory[(warp * ROWS + m) * 128 + first + e * apart] = acc[m][e];
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * 128; i += 512) {
        float sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            sum += memory[w * ROWS * 128 + i];
        if (SPLIT > 1)
            total[i] = sum;
        else if (i / 128 < M && n0 + i % 128 < N)
            C[i / 128 * N + n0 + i % 128] = sum;
    }
    if (SPLIT == 1)
        return;
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
    const int share = ROWS * 128 / SPLIT;
    for (int i = rank * share + threadIdx.x; i < (rank + 1) * share; i += 512) {
        const unsigned at = (unsigned)__cvta_generic_to_shared(total + i);
        float sum = 0;
#pragma unroll
        for (int p = 0; p < SPLIT; p++) {
            float one;
            asm volatile("{\n.reg .b32 there;\n"
                         "mapa.shared::cluster.u32 there, %1, %2;\n"
                         "ld.shared::cluster.f32 %0, [there];\n}"
                         : "=f"(one)
                         : "r"(at), "r"(p)
                         : "memory");
            sum += one;
        }
        if (i / 128 < M && n0 + i % 128 < N)
            C[i / 128 * N + n0 + i % 128] = sum;
    }
    /* nobody reads this block's any more */
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
