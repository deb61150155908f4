/*---
launch:
  - entry: layernorm
    grid: ceil_div(M, WARPS)
    block: 32 * WARPS
    args: [X, gamma, beta, Y, M, N]
tune:
  WARPS: [4, 2, 8, 16]
  ITEMS: [8, 2, 4, 16]
  RESIDENT: [768, 1024, 2048, 512]
---*/
/* A warp a row, without a barrier. A row of at most 128 * ITEMS numbers stays in registers and is
 * read once; a longer one is read three times, mostly from the caches: for its mean, for the
 * squares of what deviates from it, for the result. */
#define HELD (128ll * ITEMS)

static __device__ __forceinline__ float sum_of(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    return v;
}

/* Four neighbours, or four numbers a warp apart; `left` of them exist, the others are `other`. */
template <bool WIDE>
static __device__ __forceinline__ void load(const float *x, long long left, float other, float *v)
{
    if (WIDE) {
        const float4 w = left > 0 ? *(const float4 *)x : make_float4(other, other, other, other);
        v[0] = w.x, v[1] = w.y, v[2] = w.z, v[3] = w.w;
    } else {
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[c] = 32 * c < left ? x[32 * c] : other;
    }
}

template <bool WIDE>
static __device__ __forceinline__ void finish(const float *v, float mean, float scale,
                                              const float *gamma, const float *beta, float *y,
                                              long long left)
{
    float g[4], b[4];
    load<WIDE>(gamma, left, 0, g);
    load<WIDE>(beta, left, 0, b);
#pragma unroll
    for (int c = 0; c < 4; c++)
        b[c] = fmaf((v[c] - mean) * scale, g[c], b[c]);
    if (WIDE) {
        if (left > 0)
            __stcs((float4 *)y, make_float4(b[0], b[1], b[2], b[3]));
    } else {
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (32 * c < left)
                y[32 * c] = b[c];
    }
}

/* A long sum of short ones: what a plain addition loses is kept. */
struct sum {
    float high, low;
};

static __device__ __forceinline__ void add(struct sum *sum, float v)
{
    const float all = sum->high + v, part = all - sum->high;
    sum->low += (sum->high - (all - part)) + (v - part);
    sum->high = all;
}

template <bool WIDE>
static __device__ __forceinline__ void row(const float *x, const float *gamma, const float *beta,
                                           float *y, long long N)
{
    const int at = (WIDE ? 4 : 1) * (threadIdx.x % 32);
    const bool kept = N <= HELD;
    float v[ITEMS][4];
    struct sum sum = {0, 0}, squares = {0, 0};
    for (long long n = at; n < N; n += HELD) {
        float part = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load<WIDE>(x + n + i * 128, N - n - i * 128, 0, v[i]);
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            part += (v[i][0] + v[i][1]) + (v[i][2] + v[i][3]);
        add(&sum, part);
    }
    const float mean = sum_of(sum.high + sum.low) / (float)N;
    for (long long n = at; n < N; n += HELD) {
        float part = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            if (!kept)
                load<WIDE>(x + n + i * 128, N - n - i * 128, mean, v[i]);
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const float d = v[i][c] - mean;
                part += n + i * 128 + (WIDE ? 0 : 32 * c) < N ? d * d : 0.0f;
            }
        }
        add(&squares, part);
    }
    const float scale = 1.0f / sqrtf(sum_of(squares.high + squares.low) / (float)N + 1e-5f);
    for (long long n = at; n < N; n += HELD)
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const long long k = n + i * 128;
            if (!kept)
                load<WIDE>(x + k, N - k, mean, v[i]);
            finish<WIDE>(v[i], mean, scale, gamma + k, beta + k, y + k, N - k);
        }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, (RESIDENT + 32 * WARPS - 1) / (32 * WARPS))
    layernorm(const float *__restrict__ X, const float *__restrict__ gamma,
              const float *__restrict__ beta, float *__restrict__ Y, long long M, long long N)
{
    const long long m = blockIdx.x * (long long)WARPS + threadIdx.x / 32;
    if (m >= M)
        return;
    if (N % 4 == 0)
        row<true>(X + m * N, gamma, beta, Y + m * N, N);
    else
        row<false>(X + m * N, gamma, beta, Y + m * N, N);
}
