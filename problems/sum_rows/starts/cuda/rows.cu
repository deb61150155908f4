/*---
launch:
  - entry: sum_rows
    grid: ceil_div(M, ROWS)
    block: 32 * WARPS * ROWS
    args: [X, y, M, N]
tune:
  WARPS: [4, 1, 2, 8]
  ROWS: [1, 2, 4, 8]
  UNROLL: [4, 2, 8]
  RESIDENT: [1024, 2048, 1536, 768, 512]
  where: WARPS * ROWS <= 32 && RESIDENT <= 1024 * WARPS * ROWS
---*/
/* WARPS warps a row, ROWS rows a block. Each thread has UNROLL loads of 16 bytes under way and as
 * many sums; they are joined by shuffles, and across warps through shared memory. */
#define WIDTH (32 * WARPS)

static __device__ __forceinline__ float total(const float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

extern "C" __global__ void __launch_bounds__(WIDTH *ROWS,
                                             (RESIDENT + WIDTH * ROWS - 1) / (WIDTH * ROWS))
    sum_rows(const float *__restrict__ X, float *__restrict__ y, long long M, long long N)
{
    __shared__ float part[WARPS * ROWS];
    const int lane = threadIdx.x % WIDTH;
    const long long m = blockIdx.x * (long long)ROWS + threadIdx.x / WIDTH;
    const float *x = X + m * N;
    float sums[UNROLL] = {}, sum = 0;
    if (m < M && N % 4 == 0) {
        const float4 *x4 = (const float4 *)x;
        const long long count = N / 4;
        long long n = lane;
        for (; n + (UNROLL - 1) * WIDTH < count; n += UNROLL * WIDTH)
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                sums[u] += total(__ldcs(x4 + n + u * WIDTH));
        for (; n < count; n += WIDTH)
            sum += total(__ldcs(x4 + n));
    } else if (m < M) {
        long long n = lane;
        for (; n + (UNROLL - 1) * WIDTH < N; n += UNROLL * WIDTH)
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                sums[u] += x[n + u * WIDTH];
        for (; n < N; n += WIDTH)
            sum += x[n];
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        sum += sums[u];
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    if (WARPS > 1) {
        if (lane % 32 == 0)
            part[threadIdx.x / 32] = sum;
        __syncthreads();
        sum = 0;
        if (lane == 0)
            for (int w = 0; w < WARPS; w++)
                sum += part[threadIdx.x / 32 + w];
    }
    if (m < M && lane == 0)
        y[m] = sum;
}
