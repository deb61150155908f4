/*---
launch:
  - entry: softmax
    grid: ceil_div(M, WARPS)
    block: 32 * WARPS
    args: [X, Y, M, N]
tune:
  WARPS: [4, 2, 8, 16]
  ITEMS: [8, 1, 2, 3, 4, 5, 6, 12, 16]
  RESIDENT: [768, 1024, 2048, 512]
  where: ITEMS == 8 || 128 * ITEMS >= N && 64 * ITEMS <= N + 64
---*/
/* A warp a row, without a barrier. A row of at most 128 * ITEMS numbers stays in registers and is
 * read once; of a longer one maximum and sum are found in one pass, and it is read again. */
#define LEAST -3.402823466e38f
#define LOG2E 1.4426950409f
#define HELD  (128ll * ITEMS)

/* Four numbers of 128, as many at once as rows are aligned to: where they lie for c = 0 to 3. */
#define PLACE(c) ((c) / WIDTH * 32 * WIDTH + (c) % WIDTH)

template <int WIDTH>
static __device__ __forceinline__ void load(const float *x, long long left, float *v)
{
#pragma unroll
    for (int c = 0; c < 4; c += WIDTH) {
        const bool in = PLACE(c) < left;
        const float *from = x + PLACE(c);
        if (WIDTH == 4) {
            const float4 none = make_float4(LEAST, LEAST, LEAST, LEAST),
                         w = in ? __ldcs((const float4 *)from) : none;
            v[c] = w.x, v[c + 1] = w.y, v[c + 2] = w.z, v[c + 3] = w.w;
        } else if (WIDTH == 2) {
            const float2 w = in ? __ldcs((const float2 *)from) : make_float2(LEAST, LEAST);
            v[c] = w.x, v[c + 1] = w.y;
        } else {
            v[c] = in ? *from : LEAST;
        }
    }
}

template <int WIDTH>
static __device__ __forceinline__ void store(float *y, long long left, const float *v)
{
#pragma unroll
    for (int c = 0; c < 4; c += WIDTH) {
        float *to = y + PLACE(c);
        if (PLACE(c) >= left)
            continue;
        if (WIDTH == 4)
            __stcs((float4 *)to, make_float4(v[c], v[c + 1], v[c + 2], v[c + 3]));
        else if (WIDTH == 2)
            __stcs((float2 *)to, make_float2(v[c], v[c + 1]));
        else
            *to = v[c];
    }
}

/* In base 2, in three instructions: what is below 1e-38 is nothing beside the largest one's 1. */
static __device__ __forceinline__ float powered(float x, float most)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"((x - most) * LOG2E));
    return y;
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

template <int WIDTH>
static __device__ __forceinline__ void held(const float *x, float *y, long long N)
{
    const int at = WIDTH * (threadIdx.x % 32), count = (int)N;
    float v[ITEMS][4], most = LEAST, sum = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        load<WIDTH>(x + at + i * 128, count - at - i * 128, v[i]);
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        most = fmaxf(most, fmaxf(fmaxf(v[i][0], v[i][1]), fmaxf(v[i][2], v[i][3])));
    most = largest_of(most);
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            v[i][c] = powered(v[i][c], most);
            sum += at + i * 128 + PLACE(c) < count ? v[i][c] : 0.0f;
        }
    const float scale = 1.0f / sum_of(sum);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[i][c] *= scale;
        store<WIDTH>(y + at + i * 128, count - at - i * 128, v[i]);
    }
}

template <int WIDTH>
static __device__ __forceinline__ void twice(const float *x, float *y, long long N)
{
    const int at = WIDTH * (threadIdx.x % 32);
    float most = LEAST, sum = 0;
    for (long long n = at; n < N; n += 256) {
        float v[2][4], top = most;
        load<WIDTH>(x + n, N - n, v[0]);
        load<WIDTH>(x + n + 128, N - n - 128, v[1]);
#pragma unroll
        for (int i = 0; i < 2; i++)
            top = fmaxf(top, fmaxf(fmaxf(v[i][0], v[i][1]), fmaxf(v[i][2], v[i][3])));
        sum *= powered(most, top);
        most = top;
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                sum += n + i * 128 + PLACE(c) < N ? powered(v[i][c], most) : 0.0f;
    }
    const float largest = largest_of(most);
    const float scale = 1.0f / sum_of(sum * powered(most, largest));
    for (long long n = at; n < N; n += 128) {
        float v[4];
        load<WIDTH>(x + n, N - n, v);
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[c] = powered(v[c], largest) * scale;
        store<WIDTH>(y + n, N - n, v);
    }
}

template <int WIDTH>
static __device__ __forceinline__ void one(const float *x, float *y, long long N)
{
    if (N <= HELD)
        held<WIDTH>(x, y, N);
    else
        twice<WIDTH>(x, y, N);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, (RESIDENT + 32 * WARPS - 1) / (32 * WARPS))
    softmax(const float *__restrict__ X, float *__restrict__ Y, long long M, long long N)
{
    const long long row = blockIdx.x * (long long)WARPS + threadIdx.x / 32;
    if (row >= M)
        return;
    const float *x = X + row * N;
    float *y = Y + row * N;
    if (N % 4 == 0)
        one<4>(x, y, N);
    else if (N % 2 == 0)
        one<2>(x, y, N);
    else
        one<1>(x, y, N);
}
