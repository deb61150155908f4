/*---
launch:
  - entry: softmax
    grid: ceil_div(M, WARPS)
    block: 32 * WARPS
    args: [X, Y, M, N]
tune:
  WARPS: [4, 2, 8, 16]
  ITEMS: [8, 2, 4, 16]
  RESIDENT: [768, 1024, 2048, 512]
---*/
/* A warp a row, without a barrier. A row of at most 128 * ITEMS numbers stays in registers and is
 * read once; of a longer one maximum and sum are found in one pass, and it is read again. */
#define LEAST -3.402823466e38f
#define HELD  (128ll * ITEMS)

template <bool WIDE>
static __device__ __forceinline__ void load(const float *x, long long left, float *v)
{
    if (WIDE) {
        const float4 w =
            left > 0 ? __ldcs((const float4 *)x) : make_float4(LEAST, LEAST, LEAST, LEAST);
        v[0] = w.x, v[1] = w.y, v[2] = w.z, v[3] = w.w;
    } else {
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[c] = c * 32 < left ? x[c * 32] : LEAST;
    }
}

template <bool WIDE>
static __device__ __forceinline__ void store(float *y, long long left, const float *v)
{
    if (WIDE) {
        if (left > 0)
            __stcs((float4 *)y, make_float4(v[0], v[1], v[2], v[3]));
    } else {
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (c * 32 < left)
                y[c * 32] = v[c];
    }
}

static __device__ __forceinline__ float largest_of(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    return v;
}

static __device__ __forceinline__ float sum_of(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    return v;
}

template <bool WIDE>
static __device__ __forceinline__ void held(const float *x, float *y, long long N)
{
    const int at = (WIDE ? 4 : 1) * (threadIdx.x % 32), count = (int)N;
    float v[ITEMS][4], most = LEAST, sum = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        load<WIDE>(x + at + i * 128, count - at - i * 128, v[i]);
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        most = fmaxf(most, fmaxf(fmaxf(v[i][0], v[i][1]), fmaxf(v[i][2], v[i][3])));
    most = largest_of(most);
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            v[i][c] = expf(v[i][c] - most);
            sum += at + i * 128 + (WIDE ? c : 32 * c) < count ? v[i][c] : 0.0f;
        }
    const float scale = 1.0f / sum_of(sum);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[i][c] *= scale;
        store<WIDE>(y + at + i * 128, count - at - i * 128, v[i]);
    }
}

template <bool WIDE>
static __device__ __forceinline__ void twice(const float *x, float *y, long long N)
{
    const int at = (WIDE ? 4 : 1) * (threadIdx.x % 32);
    float most = LEAST, sum = 0;
    for (long long n = at; n < N; n += 256) {
        float v[2][4], top = most;
        load<WIDE>(x + n, N - n, v[0]);
        load<WIDE>(x + n + 128, N - n - 128, v[1]);
#pragma unroll
        for (int i = 0; i < 2; i++)
            top = fmaxf(top, fmaxf(fmaxf(v[i][0], v[i][1]), fmaxf(v[i][2], v[i][3])));
        sum *= expf(most - top);
        most = top;
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                sum += n + i * 128 + (WIDE ? 0 : 32 * c) < N ? expf(v[i][c] - most) : 0.0f;
    }
    const float largest = largest_of(most);
    const float scale = 1.0f / sum_of(sum * expf(most - largest));
    for (long long n = at; n < N; n += 128) {
        float v[4];
        load<WIDE>(x + n, N - n, v);
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[c] = expf(v[c] - largest) * scale;
        store<WIDE>(y + n, N - n, v);
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, (RESIDENT + 32 * WARPS - 1) / (32 * WARPS))
    softmax(const float *__restrict__ X, float *__restrict__ Y, long long M, long long N)
{
    const long long row = blockIdx.x * (long long)WARPS + threadIdx.x / 32;
    if (row >= M)
        return;
    const float *x = X + row * N;
    float *y = Y + row * N;
    if (N <= HELD && N % 4 == 0)
        held<true>(x, y, N);
    else if (N <= HELD)
        held<false>(x, y, N);
    else if (N % 4 == 0)
        twice<true>(x, y, N);
    else
        twice<false>(x, y, N);
}
