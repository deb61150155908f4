/*---
launch:
  - entry: moments_of
    grid: PARTS * M
    block: BLOCK
    args: [X, parts, N]
  - entry: layernorm
    grid: PARTS * M
    block: BLOCK
    args: [X, gamma, beta, Y, parts, N]
workspace:
  parts: {shape: [M, PARTS, 3], dtype: float32}
tune:
  PARTS: [16, 8, 32, 64, 128]
  BLOCK: [256, 512, 1024]
  RESIDENT: [1024, 2048, 1536, 768, 512]
---*/
/* Few long rows: PARTS blocks a row. The first launch writes count, mean and squares of each part;
 * the second joins its row's parts (Chan's formula, which does not cancel) and writes the result,
 * whose second read comes from L2 where the input fits there. */
#define WARPS (BLOCK / 32)
#define STEP  (4ll * BLOCK)

struct moments {
    float count, mean, squares;
};

static __device__ __forceinline__ struct moments join(struct moments a, struct moments b)
{
    const float count = a.count + b.count, share = count > 0 ? b.count / count : 0.0f,
                d = b.mean - a.mean;
    return {count, fmaf(d, share, a.mean), a.squares + b.squares + d * d * a.count * share};
}

static __device__ __forceinline__ struct moments join_warp(struct moments a)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        struct moments b;
        b.count = __shfl_xor_sync(~0u, a.count, d);
        b.mean = __shfl_xor_sync(~0u, a.mean, d);
        b.squares = __shfl_xor_sync(~0u, a.squares, d);
        a = join(a, b);
    }
    return a;
}

/* A part of a row: [begin, end), begin a multiple of 4. */
static __device__ __forceinline__ void part_of(unsigned part, long long N, long long *begin,
                                               long long *end)
{
    const long long each = ((N + PARTS - 1) / PARTS + 3) / 4 * 4;
    *begin = part * each;
    *end = min(N, *begin + each);
}

/* Four neighbours, or four numbers BLOCK apart; those from `end` on are 0. */
template <bool WIDE>
static __device__ __forceinline__ void load(const float *x, long long left, float *v)
{
    if (WIDE) {
        const float4 w = left > 0 ? *(const float4 *)x : make_float4(0, 0, 0, 0);
        v[0] = w.x, v[1] = w.y, v[2] = w.z, v[3] = w.w;
    } else {
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[c] = c * BLOCK < left ? x[c * BLOCK] : 0.0f;
    }
}

template <bool WIDE>
static __device__ __forceinline__ struct moments gather(const float *x, long long count)
{
    struct moments all = {0, 0, 0};
    for (long long n = WIDE ? 4ll * threadIdx.x : threadIdx.x; n < count; n += 4 * STEP) {
        float v[4][4], sum = 0, seen = 0;
#pragma unroll
        for (int i = 0; i < 4; i++)
            load<WIDE>(x + n + i * STEP, count - n - i * STEP, v[i]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sum += (v[i][0] + v[i][1]) + (v[i][2] + v[i][3]);
#pragma unroll
            for (int c = 0; c < 4; c++)
                seen += n + i * STEP + (WIDE ? 0 : c * BLOCK) < count ? 1.0f : 0.0f;
        }
        struct moments run = {seen, sum / seen, 0};
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const float d = v[i][c] - run.mean;
                run.squares += n + i * STEP + (WIDE ? 0 : c * BLOCK) < count ? d * d : 0.0f;
            }
        all = join(all, run);
    }
    return all;
}

extern "C" __global__ void __launch_bounds__(BLOCK, (RESIDENT + BLOCK - 1) / BLOCK)
    moments_of(const float *__restrict__ X, float *__restrict__ parts, long long N)
{
    __shared__ float part[96];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    long long begin, end;
    part_of(blockIdx.x % PARTS, N, &begin, &end);
    const float *x = X + blockIdx.x / PARTS * N + begin;
    struct moments all =
        join_warp(N % 4 == 0 ? gather<true>(x, end - begin) : gather<false>(x, end - begin));
    if (lane == 0) {
        part[warp] = all.count;
        part[32 + warp] = all.mean;
        part[64 + warp] = all.squares;
    }
    __syncthreads();
    if (warp > 0)
        return;
    if (lane < WARPS)
        all = {part[lane], part[32 + lane], part[64 + lane]};
    else
        all = {0, 0, 0};
    all = join_warp(all);
    if (lane == 0) {
        float *to = parts + blockIdx.x * 3ll;
        to[0] = all.count;
        to[1] = all.mean;
        to[2] = all.squares;
    }
}

template <bool WIDE>
static __device__ __forceinline__ void finish(const float *x, const float *gamma, const float *beta,
                                              float *y, long long count, float mean, float scale)
{
    for (long long n = WIDE ? 4ll * threadIdx.x : threadIdx.x; n < count; n += STEP) {
        float v[4], g[4], b[4];
        load<WIDE>(x + n, count - n, v);
        load<WIDE>(gamma + n, count - n, g);
        load<WIDE>(beta + n, count - n, b);
#pragma unroll
        for (int c = 0; c < 4; c++)
            b[c] = fmaf((v[c] - mean) * scale, g[c], b[c]);
        if (WIDE)
            __stcs((float4 *)(y + n), make_float4(b[0], b[1], b[2], b[3]));
        else
#pragma unroll
            for (int c = 0; c < 4; c++)
                if (n + c * BLOCK < count)
                    y[n + c * BLOCK] = b[c];
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, (RESIDENT + BLOCK - 1) / BLOCK)
    layernorm(const float *__restrict__ X, const float *__restrict__ gamma,
              const float *__restrict__ beta, float *__restrict__ Y,
              const float *__restrict__ parts, long long N)
{
    const int lane = threadIdx.x % 32;
    const unsigned block = gridDim.x - 1 - blockIdx.x; /* what was read last is still in L2 */
    const float *from = parts + block / PARTS * (PARTS * 3ll);
    struct moments all = {0, 0, 0};
    for (int i = lane; i < PARTS; i += 32)
        all = join(all, {from[3 * i], from[3 * i + 1], from[3 * i + 2]});
    all = join_warp(all);
    const float scale = 1.0f / sqrtf(all.squares / (float)N + 1e-5f);
    long long begin, end;
    part_of(block % PARTS, N, &begin, &end);
    const long long first = block / PARTS * N + begin;
    if (N % 4 == 0)
        finish<true>(X + first, gamma + begin, beta + begin, Y + first, end - begin, all.mean,
                     scale);
    else
        finish<false>(X + first, gamma + begin, beta + begin, Y + first, end - begin, all.mean,
                      scale);
}
