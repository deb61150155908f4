/*---
tune:
  SPLIT: [16, 32, 48]
  THREADS: [512, 1024, 256]
workspace:
  parts: {shape: [B, SPLIT, 2], dtype: float32}
launch:
  - {entry: softmax_parts, grid: "SPLIT, min(B, 65535)", block: THREADS, args: [x, parts, B]}
  - {entry: softmax_write, grid: "SPLIT, min(B, 65535)", block: THREADS, args: [x, parts, out, B]}
---*/
/* No clusters: maxima and sums of the rows' parts first, then the results, the last rows before the first, since these are
 * still in the L2. */
#define ROW 393216
#define QUADS (ROW / 4 / SPLIT)
#define AHEAD 4
#define WARPS (THREADS / 32)
#define LEAST -3.402823466e38f
#define LOG2E 1.44269504f

static __device__ __forceinline__ float weight(float v, float most)
{
    return exp2f((v - most) * LOG2E);
}

static __device__ __forceinline__ float2 join(float most, float sum)
{
    float top = most;
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
    sum *= weight(most, top);
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    return make_float2(top, sum);
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax_parts(const float *__restrict__ x, float *__restrict__ parts, long long B)
{
    __shared__ float2 warps[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (long long row = blockIdx.y; row < B; row += gridDim.y) {
        const float4 *from = (const float4 *)(x + row * ROW) + blockIdx.x * QUADS;
        float most = LEAST, sum = 0.0f;
        for (int i = threadIdx.x; i < QUADS; i += AHEAD * THREADS) {
            float4 v[AHEAD];
            float top = most;
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                v[k] = i + k * THREADS < QUADS ? from[i + k * THREADS] : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
                top = fmaxf(top, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
            }
            sum *= weight(most, top);
            most = top;
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                sum += (weight(v[k].x, top) + weight(v[k].y, top)) + (weight(v[k].z, top) + weight(v[k].w, top));
        }
        float2 pair = join(most, sum);
        if (lane == 0)
            warps[warp] = pair;
        __syncthreads();
        pair = lane < WARPS ? warps[lane] : make_float2(LEAST, 0.0f);
        pair = join(pair.x, pair.y);
        if (threadIdx.x == 0)
            ((float2 *)parts)[row * SPLIT + blockIdx.x] = pair;
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax_write(const float *__restrict__ x, const float *__restrict__ parts, float *__restrict__ out, long long B)
{
    const int lane = threadIdx.x % 32;
    for (long long row = B - 1 - blockIdx.y; row >= 0; row -= gridDim.y) {
        float most = LEAST, sum = 0.0f;
        for (int i = lane; i < SPLIT; i += 32) {
            const float2 pair = ((const float2 *)parts)[row * SPLIT + i];
            const float top = fmaxf(most, pair.x);
            sum = sum * weight(most, top) + pair.y * weight(pair.x, top);
            most = top;
        }
        const float2 all = join(most, sum);
        const float scale = 1.0f / all.y;
        const float4 *from = (const float4 *)(x + row * ROW) + (SPLIT - 1 - blockIdx.x) * QUADS;
        float4 *to = (float4 *)(out + row * ROW) + (SPLIT - 1 - blockIdx.x) * QUADS;
#pragma unroll 4
        for (int i = threadIdx.x; i < QUADS; i += THREADS) {
            const float4 v = __ldcs(from + i);
            __stcs(to + i, make_float4(weight(v.x, all.x) * scale, weight(v.y, all.x) * scale,
                                       weight(v.z, all.x) * scale, weight(v.w, all.x) * scale));
        }
    }
}
