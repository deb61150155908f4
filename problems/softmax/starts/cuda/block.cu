/*---
launch:
  - entry: softmax
    grid: M
    block: BLOCK
    args: [X, Y, N]
tune:
  BLOCK: [512, 256, 128, 1024]
  ITEMS: [2, 4, 8, 1]
  RESIDENT: [768, 1024, 2048, 1536, 512]
  where: BLOCK * ITEMS <= 4096
---*/
/* A block a row. A row of at most 4 * ITEMS * BLOCK numbers stays in registers and is read once, in
 * 16-byte loads that are all under way before the first is used; a longer one is read twice: for
 * maximum and sum together, then for the result. Rows that are not aligned to 16 bytes go by
 * single numbers. */
#define LEAST -3.402823466e38f
#define WARPS (BLOCK / 32)
#define HELD  (4ll * ITEMS * BLOCK)

/* The largest of a block's numbers, or their sum. `part` is used once. */
template <bool LARGEST> static __device__ __forceinline__ float all_of(float v, float *part)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        const float other = __shfl_xor_sync(~0u, v, d);
        v = LARGEST ? fmaxf(v, other) : v + other;
    }
    if (lane == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = lane < WARPS ? part[lane] : LARGEST ? LEAST : 0.0f;
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        const float other = __shfl_xor_sync(~0u, v, d);
        v = LARGEST ? fmaxf(v, other) : v + other;
    }
    return v;
}

/* Numbers n, n + 1, n + 2, n + 3 of a row, or four numbers BLOCK apart; `left` of them exist. */
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
            v[c] = c * BLOCK < left ? x[c * BLOCK] : LEAST;
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
            if (c * BLOCK < left)
                y[c * BLOCK] = v[c];
    }
}

template <bool WIDE>
static __device__ __forceinline__ void held(const float *x, float *y, long long N, float *part)
{
    const long long at = WIDE ? 4ll * threadIdx.x : threadIdx.x;
    float v[ITEMS][4], most = LEAST, sum = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        load<WIDE>(x + at + i * 4ll * BLOCK, N - at - i * 4ll * BLOCK, v[i]);
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        most = fmaxf(most, fmaxf(fmaxf(v[i][0], v[i][1]), fmaxf(v[i][2], v[i][3])));
    most = all_of<true>(most, part);
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const long long n = at + i * 4ll * BLOCK + (WIDE ? c : c * BLOCK);
            v[i][c] = expf(v[i][c] - most);
            sum += n < N ? v[i][c] : 0.0f;
        }
    const float scale = 1.0f / all_of<false>(sum, part + 32);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[i][c] *= scale;
        store<WIDE>(y + at + i * 4ll * BLOCK, N - at - i * 4ll * BLOCK, v[i]);
    }
}

template <bool WIDE>
static __device__ __forceinline__ void twice(const float *x, float *y, long long N, float *part)
{
    const long long at = WIDE ? 4ll * threadIdx.x : threadIdx.x;
    float most = LEAST, sum = 0;
    for (long long n = at; n < N; n += 8ll * BLOCK) {
        float v[2][4], top = most;
        load<WIDE>(x + n, N - n, v[0]);
        load<WIDE>(x + n + 4ll * BLOCK, N - n - 4ll * BLOCK, v[1]);
#pragma unroll
        for (int i = 0; i < 2; i++)
            top = fmaxf(top, fmaxf(fmaxf(v[i][0], v[i][1]), fmaxf(v[i][2], v[i][3])));
        sum *= expf(most - top);
        most = top;
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                sum += n + (i * 4ll + (WIDE ? 0 : c)) * BLOCK < N ? expf(v[i][c] - most) : 0.0f;
    }
    const float largest = all_of<true>(most, part);
    const float scale = 1.0f / all_of<false>(sum * expf(most - largest), part + 32);
    for (long long n = at; n < N; n += 4ll * BLOCK) {
        float v[4];
        load<WIDE>(x + n, N - n, v);
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[c] = expf(v[c] - largest) * scale;
        store<WIDE>(y + n, N - n, v);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, (RESIDENT + BLOCK - 1) / BLOCK)
    softmax(const float *__restrict__ X, float *__restrict__ Y, long long N)
{
    __shared__ float part[64];
    const float *x = X + blockIdx.x * N;
    float *y = Y + blockIdx.x * N;
    if (N <= HELD && N % 4 == 0)
        held<true>(x, y, N, part);
    else if (N <= HELD)
        held<false>(x, y, N, part);
    else if (N % 4 == 0)
        twice<true>(x, y, N, part);
    else
        twice<false>(x, y, N, part);
}
