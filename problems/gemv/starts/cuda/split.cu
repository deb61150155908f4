/*---
launch:
  - entry: gemv_parts
    grid: M * PARTS
    block: BLOCK
    args: [A, x, parts, N]
  - entry: join
    grid: ceil_div(M, 8)
    block: 256
    args: [parts, y, M]
workspace:
  parts: {shape: [M, PARTS], dtype: float32}
tune:
  PARTS: [4, 2, 8, 16, 64]
  BLOCK: [256, 128, 512]
  RESIDENT: [1024, 2048, 1536, 768, 512]
---*/
/* Few long rows: PARTS blocks a row of A, and a second launch that joins what they found. */
static __device__ __forceinline__ float sum_of(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    return v;
}

extern "C" __global__ void __launch_bounds__(BLOCK, (RESIDENT + BLOCK - 1) / BLOCK)
    gemv_parts(const float *__restrict__ A, const float *__restrict__ x, float *__restrict__ parts,
               long long N)
{
    __shared__ float part[BLOCK / 32];
    const long long each = ((N + PARTS - 1) / PARTS + 3) / 4 * 4, begin = blockIdx.x % PARTS * each;
    const long long count = min(N - begin, each);
    const float *a = A + blockIdx.x / PARTS * N + begin;
    x += begin;
    float sum = 0;
    if (N % 4 == 0) {
#pragma unroll 4
        for (long long n = 4 * threadIdx.x; n < count; n += 4 * BLOCK) {
            const float4 v = __ldcs((const float4 *)(a + n)), w = *(const float4 *)(x + n);
            sum = fmaf(v.x, w.x, fmaf(v.y, w.y, fmaf(v.z, w.z, fmaf(v.w, w.w, sum))));
        }
    } else {
#pragma unroll 4
        for (long long n = threadIdx.x; n < count; n += BLOCK)
            sum = fmaf(a[n], x[n], sum);
    }
    sum = sum_of(sum);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    sum = sum_of(threadIdx.x < BLOCK / 32 ? part[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(256, 1)
    join(const float *__restrict__ parts, float *__restrict__ y, long long M)
{
    const long long m = blockIdx.x * 8ll + threadIdx.x / 32;
    float sum = 0;
    if (m < M)
        for (int p = threadIdx.x % 32; p < PARTS; p += 32)
            sum += parts[m * PARTS + p];
    sum = sum_of(sum);
    if (m < M && threadIdx.x % 32 == 0)
        y[m] = sum;
}
