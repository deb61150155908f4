/*---
launch:
  - entry: gemv
    grid: ceil_div(M, ROWS)
    block: 32 * WARPS * ROWS
    args: [A, x, y, M, N]
tune:
  WARPS: [4, 1, 2, 8]
  ROWS: [1, 2, 4, 8]
  UNROLL: [4, 2, 8]
  RESIDENT: [512, 768, 1024, 2048]
  where: WARPS * ROWS <= 32 && RESIDENT <= 1024 * WARPS * ROWS
---*/
/* WARPS warps a row, ROWS rows a block. Each thread has UNROLL loads of 16 bytes of A under way and
 * as many sums; x comes from the caches. Sums are joined by shuffles, and across warps through
 * shared memory. */
#define WIDTH (32 * WARPS)

static __device__ __forceinline__ float product(const float4 a, const float4 b, float sum)
{
    return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

extern "C" __global__ void __launch_bounds__(WIDTH *ROWS,
                                             (RESIDENT + WIDTH * ROWS - 1) / (WIDTH * ROWS))
    gemv(const float *__restrict__ A, const float *__restrict__ x, float *__restrict__ y,
         long long M, long long N)
{
    __shared__ float part[WARPS * ROWS];
    const int lane = threadIdx.x % WIDTH;
    const long long m = blockIdx.x * (long long)ROWS + threadIdx.x / WIDTH;
    const float *a = A + m * N;
    float sums[UNROLL] = {}, sum = 0;
    if (m < M && N % 4 == 0) {
        const float4 *a4 = (const float4 *)a, *x4 = (const float4 *)x;
        const long long count = N / 4;
        long long n = lane;
        for (; n + (UNROLL - 1) * WIDTH < count; n += UNROLL * WIDTH)
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                sums[u] = product(__ldcs(a4 + n + u * WIDTH), x4[n + u * WIDTH], sums[u]);
        for (; n < count; n += WIDTH)
            sum = product(__ldcs(a4 + n), x4[n], sum);
    } else if (m < M) {
        long long n = lane;
        for (; n + (UNROLL - 1) * WIDTH < N; n += UNROLL * WIDTH)
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                sums[u] = fmaf(a[n + u * WIDTH], x[n + u * WIDTH], sums[u]);
        for (; n < N; n += WIDTH)
            sum = fmaf(a[n], x[n], sum);
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
