/*---
tune:
  SPLIT: [24, 48, 12]
  BLOCK: [512, 1024]
  AHEAD: [8, 16, 4]
workspace:
  parts: {shape: [B, SPLIT, 2], dtype: float32}
  state: {shape: [B + 1], dtype: int32}
memset: {state: 0}
launch:
  - {entry: softmax_queue, grid: "min(2 * B * SPLIT, sm_count * (2048 / BLOCK))", block: BLOCK,
     args: [x, parts, state, out, B]}
---*/
/* A row is cut into SPLIT parts, and there are two tasks for each: leave its largest number and its
 * sum, then scale it. Blocks take tasks from a queue in which a row's second tasks come AHEAD rows
 * after its first ones, so that what is read again is still in L2. First tasks wait for nobody, and
 * tasks are taken in order: no second task waits for one that nobody has taken. */
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

static __device__ __forceinline__ void sum_part(const float4 *from, float *parts, int *ready)
{
    __shared__ float largest[BLOCK / 32], sums[BLOCK / 32];
    pair mine = {-INFINITY, 0.0f};
#pragma unroll 4
    for (int i = threadIdx.x; i < PART4; i += BLOCK) {
        const float4 v = from[i];
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
    if (threadIdx.x < 32) {
        mine = {-INFINITY, 0.0f};
        if (threadIdx.x < BLOCK / 32)
            mine = {largest[threadIdx.x], sums[threadIdx.x]};
        mine = join_warp(mine);
        if (threadIdx.x == 0) {
            __stcg(parts, mine.largest);
            __stcg(parts + 1, mine.sum);
            __threadfence();
            atomicAdd(ready, 1);
        }
    }
}

static __device__ __forceinline__ void scale_part(const float4 *from, const float *parts,
                                                  const int *ready, float4 *to)
{
    if (threadIdx.x == 0) {
        int seen;
        do
            asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(ready) : "memory");
        while (seen < SPLIT);
    }
    __syncthreads();
    pair all = {-INFINITY, 0.0f};
    for (int s = threadIdx.x % 32; s < SPLIT; s += 32)
        all = join(all, {__ldcg(parts + 2 * s), __ldcg(parts + 2 * s + 1)});
    all = join_warp(all);
    const float scale = 1.0f / all.sum;
#pragma unroll 4
    for (int i = threadIdx.x; i < PART4; i += BLOCK) {
        float4 v = __ldcs(from + i);
        v.x = exp2f((v.x - all.largest) * LOG2E) * scale;
        v.y = exp2f((v.y - all.largest) * LOG2E) * scale;
        v.z = exp2f((v.z - all.largest) * LOG2E) * scale;
        v.w = exp2f((v.w - all.largest) * LOG2E) * scale;
        __stcs(to + i, v);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, 2048 / BLOCK)
softmax_queue(const float *__restrict__ x, float *parts, int *state, float *__restrict__ out,
              long long B)
{
    __shared__ int taken;
    const int rows = (int)B, ahead = AHEAD < rows ? AHEAD : rows, both = 2 * (rows - ahead);
    for (;;) {
        if (threadIdx.x == 0)
            taken = atomicAdd(state, 1);
        __syncthreads();
        const int task = taken;
        __syncthreads();
        const int step = task / SPLIT, piece = task % SPLIT, after = step - ahead;
        if (step >= 2 * rows)
            return;
        const bool first = step < ahead || (after < both && after % 2 == 0);
        const int row = step < ahead ? step
                        : first      ? ahead + after / 2
                        : after < both ? after / 2
                                       : rows - ahead + (after - both);
        const long long at = (long long)row * (LONG / 4) + piece * PART4;
        float *row_parts = parts + row * (SPLIT * 2);
        if (first)
            sum_part((const float4 *)x + at, row_parts + 2 * piece, state + 1 + row);
        else
            scale_part((const float4 *)x + at, row_parts, state + 1 + row, (float4 *)out + at);
    }
}
