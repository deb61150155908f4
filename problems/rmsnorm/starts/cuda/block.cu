/*---
launch:
  - entry: rmsnorm
    grid: M
    block: BLOCK
    args: [X, gamma, Y, N]
tune:
  BLOCK: [512, 256, 128, 1024]
  ITEMS: [4, 8, 2, 1]
  RESIDENT: [768, 1024, 2048, 1536, 512]
  where: BLOCK * ITEMS <= 4096
---*/
/* A block a row. A row of at most 4 * ITEMS * BLOCK numbers stays in registers and is read once, in
 * 16-byte loads that are all under way before the first is used; a longer one is read again, mostly
 * from L2. Rows that are not aligned to 16 bytes go by single numbers. */
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
static __device__ __forceinline__ void finish(const float *v, float scale, const float *gamma,
                                              float *y, long long left)
{
    float g[4];
    load<WIDE>(gamma, left, g);
#pragma unroll
    for (int c = 0; c < 4; c++)
        g[c] *= v[c] * scale;
    if (WIDE) {
        if (left > 0)
            __stcs((float4 *)y, make_float4(g[0], g[1], g[2], g[3]));
    } else {
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (c * BLOCK < left)
                y[c * BLOCK] = g[c];
    }
}

template <bool WIDE>
static __device__ __forceinline__ void row(const float *x, const float *gamma, float *y,
                                           long long N, float *part)
{
    const long long at = WIDE ? 4ll * threadIdx.x : threadIdx.x;
    const bool kept = N <= HELD;
    float v[ITEMS][4], squares = 0;
    for (long long n = at; n < N; n += HELD) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load<WIDE>(x + n + i * STEP, N - n - i * STEP, v[i]);
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                squares = fmaf(v[i][c], v[i][c], squares);
    }
    const float scale = 1.0f / sqrtf(sum_all(squares, part) / (float)N + 1e-6f);
    for (long long n = at; n < N; n += HELD)
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const long long k = n + i * STEP;
            if (!kept)
                load<WIDE>(x + k, N - k, v[i]);
            finish<WIDE>(v[i], scale, gamma + k, y + k, N - k);
        }
}

extern "C" __global__ void __launch_bounds__(BLOCK, (RESIDENT + BLOCK - 1) / BLOCK)
    rmsnorm(const float *__restrict__ X, const float *__restrict__ gamma, float *__restrict__ Y,
            long long N)
{
    __shared__ float part[32];
    if (N % 4 == 0)
        row<true>(X + blockIdx.x * N, gamma, Y + blockIdx.x * N, N, part);
    else
        row<false>(X + blockIdx.x * N, gamma, Y + blockIdx.x * N, N, part);
}
