/*---
launch:
  - entry: rmsnorm
    grid: ceil_div(M, WARPS)
    block: 32 * WARPS
    args: [X, gamma, Y, M, N]
tune:
  WARPS: [4, 2, 8, 16]
  ITEMS: [8, 2, 4, 16]
  RESIDENT: [768, 1024, 2048, 512]
---*/
/* A warp a row, without a barrier. A row of at most 128 * ITEMS numbers stays in registers and is
 * read once; a longer one is read again, mostly from the caches. */
#define HELD (128ll * ITEMS)

static __device__ __forceinline__ float sum_of(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    return v;
}

/* Four neighbours, or four numbers a warp apart; `left` of them exist, the others are 0. */
template <bool WIDE>
static __device__ __forceinline__ void load(const float *x, long long left, float *v)
{
    if (WIDE) {
        const float4 w = left > 0 ? *(const float4 *)x : make_float4(0, 0, 0, 0);
        v[0] = w.x, v[1] = w.y, v[2] = w.z, v[3] = w.w;
    } else {
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[c] = 32 * c < left ? x[32 * c] : 0.0f;
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
            if (32 * c < left)
                y[32 * c] = g[c];
    }
}

template <bool WIDE>
static __device__ __forceinline__ void row(const float *x, const float *gamma, float *y,
                                           long long N)
{
    const int at = (WIDE ? 4 : 1) * (threadIdx.x % 32);
    const bool kept = N <= HELD;
    float v[ITEMS][4], squares = 0;
    for (long long n = at; n < N; n += HELD) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load<WIDE>(x + n + i * 128, N - n - i * 128, v[i]);
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                squares = fmaf(v[i][c], v[i][c], squares);
    }
    const float scale = 1.0f / sqrtf(sum_of(squares) / (float)N + 1e-6f);
    for (long long n = at; n < N; n += HELD)
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const long long k = n + i * 128;
            if (!kept)
                load<WIDE>(x + k, N - k, v[i]);
            finish<WIDE>(v[i], scale, gamma + k, y + k, N - k);
        }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, (RESIDENT + 32 * WARPS - 1) / (32 * WARPS))
    rmsnorm(const float *__restrict__ X, const float *__restrict__ gamma, float *__restrict__ Y,
            long long M, long long N)
{
    const long long m = blockIdx.x * (long long)WARPS + threadIdx.x / 32;
    if (m >= M)
        return;
    if (N % 4 == 0)
        row<true>(X + m * N, gamma, Y + m * N, N);
    else
        row<false>(X + m * N, gamma, Y + m * N, N);
}
