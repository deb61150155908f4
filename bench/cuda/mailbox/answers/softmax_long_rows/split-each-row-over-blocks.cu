/*---
tune:
  SPLIT: [12, 24, 48]
  BLOCK: [512, 1024, 256]
workspace:
  parts: {shape: [B, SPLIT, 2], dtype: float32}
launch:
  - {entry: part_sums, grid: "SPLIT, B", block: BLOCK, args: [x, parts]}
  - {entry: scale_parts, grid: "SPLIT, B", block: BLOCK, args: [x, parts, out]}
---*/
/* A row is 393216 numbers, cut into SPLIT parts. The first kernel leaves each part's largest number
 * and its sum of exponentials; the second puts those together and reads the part again. */
#define LONG 393216
#define PART4 (LONG / SPLIT / 4)
#define LOG2E 1.44269504f

struct pair {
    float largest, sum;
};

static __device__ __forceinline__ pair join(pair a, pair b)
{
    const float m = fmaxf(a.largest, b.largest);
    if (m == -INFINITY)
        return {m, 0.0f};
    return {m, a.sum * exp2f((a.largest - m) * LOG2E) + b.sum * exp2f((b.largest - m) * LOG2E)};
}

static __device__ __forceinline__ pair join_warp(pair a)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        a = join(a, {__shfl_xor_sync(~0u, a.largest, d), __shfl_xor_sync(~0u, a.sum, d)});
    return a;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
part_sums(const float *__restrict__ x, float *__restrict__ parts)
{
    __shared__ float largest[BLOCK / 32], sums[BLOCK / 32];
    const float4 *row = (const float4 *)(x + (long long)blockIdx.y * LONG) + blockIdx.x * PART4;
    pair mine = {-INFINITY, 0.0f};
    for (int i = threadIdx.x; i < PART4; i += BLOCK) {
        const float4 v = row[i];
        const float m = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
        if (m > mine.largest) {
            mine.sum *= exp2f((mine.largest - m) * LOG2E);
            mine.largest = m;
        }
        mine.sum += exp2f((v.x - mine.largest) * LOG2E) + exp2f((v.y - mine.largest) * LOG2E) +
                    exp2f((v.z - mine.largest) * LOG2E) + exp2f((v.w - mine.largest) * LOG2E);
    }
    mine = join_warp(mine);
    if (threadIdx.x % 32 == 0) {
        largest[threadIdx.x / 32] = mine.largest;
        sums[threadIdx.x / 32] = mine.sum;
    }
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    mine = {-INFINITY, 0.0f};
    if (threadIdx.x < BLOCK / 32)
        mine = {largest[threadIdx.x], sums[threadIdx.x]};
    mine = join_warp(mine);
    if (threadIdx.x == 0) {
        parts[(blockIdx.y * SPLIT + blockIdx.x) * 2] = mine.largest;
        parts[(blockIdx.y * SPLIT + blockIdx.x) * 2 + 1] = mine.sum;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
scale_parts(const float *__restrict__ x, const float *__restrict__ parts, float *__restrict__ out)
{
    const long long at = (long long)blockIdx.y * (LONG / 4) + blockIdx.x * PART4;
    const float *row_parts = parts + blockIdx.y * SPLIT * 2;
    pair all = {-INFINITY, 0.0f};
#pragma unroll
    for (int s = 0; s < SPLIT; s++)
        all = join(all, {row_parts[2 * s], row_parts[2 * s + 1]});
    const float scale = 1.0f / all.sum;
    for (int i = threadIdx.x; i < PART4; i += BLOCK) {
        float4 v = __ldcs((const float4 *)x + at + i);
        v.x = exp2f((v.x - all.largest) * LOG2E) * scale;
        v.y = exp2f((v.y - all.largest) * LOG2E) * scale;
        v.z = exp2f((v.z - all.largest) * LOG2E) * scale;
        v.w = exp2f((v.w - all.largest) * LOG2E) * scale;
        __stcs((float4 *)out + at + i, v);
    }
}
