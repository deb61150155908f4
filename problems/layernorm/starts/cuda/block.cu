/*---
launch:
  - entry: layernorm
    grid: M
    block: BLOCK
    args: [X, gamma, beta, Y, N]
tune:
  BLOCK: [512, 256, 128, 1024]
  ITEMS: [2, 4, 8, 1]
  RESIDENT: [768, 1024, 2048, 1536, 512]
  where: BLOCK * ITEMS <= 4096
---*/
/* A block a row. A row of at most 4 * ITEMS * BLOCK numbers stays in registers: read once, its mean
 * first, then the squares of what deviates from it. Of a longer row each thread joins means and
 * squares of short runs (Chan's formula, which does not cancel), and the row is read again. */
#define WARPS (BLOCK / 32)
#define STEP  (4ll * BLOCK)
#define HELD  (ITEMS * STEP)

static __device__ __forceinline__ float sum_of(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    return v;
}

/* `part` is used once. */
static __device__ __forceinline__ float sum_all(float v, float *part)
{
    const int lane = threadIdx.x % 32;
    v = sum_of(v);
    if (lane == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    return sum_of(lane < WARPS ? part[lane] : 0.0f);
}

/* Four neighbours, or four numbers BLOCK apart; `left` of them exist, the others are 0. */
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
static __device__ __forceinline__ void finish(const float *v, float mean, float scale,
                                              const float *gamma, const float *beta, float *y,
                                              long long left)
{
    float g[4], b[4];
    load<WIDE>(gamma, left, g);
    load<WIDE>(beta, left, b);
#pragma unroll
    for (int c = 0; c < 4; c++)
        b[c] = fmaf((v[c] - mean) * scale, g[c], b[c]);
    if (WIDE) {
        if (left > 0)
            __stcs((float4 *)y, make_float4(b[0], b[1], b[2], b[3]));
    } else {
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (c * BLOCK < left)
                y[c * BLOCK] = b[c];
    }
}

template <bool WIDE>
static __device__ __forceinline__ void held(const float *x, const float *gamma, const float *beta,
                                            float *y, long long N, float *part)
{
    const long long at = WIDE ? 4ll * threadIdx.x : threadIdx.x;
    float v[ITEMS][4], sum = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        load<WIDE>(x + at + i * STEP, N - at - i * STEP, v[i]);
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        sum += (v[i][0] + v[i][1]) + (v[i][2] + v[i][3]);
    const float mean = sum_all(sum, part) / (float)N;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const float d = v[i][c] - mean;
            squares += at + i * STEP + (WIDE ? 0 : c * BLOCK) < N ? d * d : 0.0f;
        }
    const float scale = 1.0f / sqrtf(sum_all(squares, part + 32) / (float)N + 1e-5f);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const long long n = at + i * STEP;
        finish<WIDE>(v[i], mean, scale, gamma + n, beta + n, y + n, N - n);
    }
}

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

template <bool WIDE>
static __device__ __forceinline__ void twice(const float *x, const float *gamma, const float *beta,
                                             float *y, long long N, float *part)
{
    const long long at = WIDE ? 4ll * threadIdx.x : threadIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    struct moments all = {0, 0, 0};
    for (long long n = at; n < N; n += 4 * STEP) {
        float v[4][4], sum = 0, count = 0;
#pragma unroll
        for (int i = 0; i < 4; i++)
            load<WIDE>(x + n + i * STEP, N - n - i * STEP, v[i]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sum += (v[i][0] + v[i][1]) + (v[i][2] + v[i][3]);
#pragma unroll
            for (int c = 0; c < 4; c++)
                count += n + i * STEP + (WIDE ? 0 : c * BLOCK) < N ? 1.0f : 0.0f;
        }
        struct moments run = {count, sum / count, 0};
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const float d = v[i][c] - run.mean;
                run.squares += n + i * STEP + (WIDE ? 0 : c * BLOCK) < N ? d * d : 0.0f;
            }
        all = join(all, run);
    }
    all = join_warp(all);
    if (lane == 0) {
        part[warp] = all.count;
        part[32 + warp] = all.mean;
        part[64 + warp] = all.squares;
    }
    __syncthreads();
    if (lane < WARPS)
        all = {part[lane], part[32 + lane], part[64 + lane]};
    else
        all = {0, 0, 0};
    all = join_warp(all);
    const float scale = 1.0f / sqrtf(all.squares / (float)N + 1e-5f);
    for (long long n = at; n < N; n += STEP) {
        float v[4];
        load<WIDE>(x + n, N - n, v);
        finish<WIDE>(v, all.mean, scale, gamma + n, beta + n, y + n, N - n);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, (RESIDENT + BLOCK - 1) / BLOCK)
    layernorm(const float *__restrict__ X, const float *__restrict__ gamma,
              const float *__restrict__ beta, float *__restrict__ Y, long long N)
{
    __shared__ float part[96];
    const float *x = X + blockIdx.x * N;
    float *y = Y + blockIdx.x * N;
    if (N <= HELD && N % 4 == 0)
        held<true>(x, gamma, beta, y, N, part);
    else if (N <= HELD)
        held<false>(x, gamma, beta, y, N, part);
    else if (N % 4 == 0)
        twice<true>(x, gamma, beta, y, N, part);
    else
        twice<false>(x, gamma, beta, y, N, part);
}
