/*---
launch:
  - entry: softmax
    grid: M * SIZE
    block: BLOCK
    cluster: SIZE
    args: [X, Y, N]
tune:
  SIZE: [2, 4, 8]
  BLOCK: [512, 256, 1024]
  ITEMS: [4, 2, 8]
  RESIDENT: [1024, 2048, 1536, 768, 512]
  where: BLOCK * ITEMS <= 4096
---*/
/* A cluster of SIZE blocks a row: each holds its share in registers, reads it once, and learns the
 * others' maximum and sum through their shared memory. For rows too long for one block's registers
 * and too few to keep many blocks a processor at work. Shares of more than 4 * ITEMS * BLOCK
 * numbers are read twice. */
#define LEAST -3.402823466e38f
#define WARPS (BLOCK / 32)

/* What the blocks of the cluster, in order, have at this place of their shared memory. */
static __device__ __forceinline__ float peer(const float *own, unsigned rank)
{
    unsigned at;
    float v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"((unsigned)__cvta_generic_to_shared(own)), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
    return v;
}

static __device__ __forceinline__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Maximum `most` of a row and sum of exponentials `sum` relative to it, from all threads'. */
static __device__ __forceinline__ void join_all(float *most, float *sum, float *mosts, float *sums)
{
    const int lane = threadIdx.x % 32;
    float top = *most;
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
    float s = *sum * expf(*most - top);
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (lane == 0) {
        mosts[threadIdx.x / 32] = top;
        sums[threadIdx.x / 32] = s;
    }
    meet(); /* all warps of all blocks have written */
    top = LEAST;
    s = 0;
    for (int i = lane; i < SIZE * WARPS; i += 32) {
        const float m = peer(mosts + i % WARPS, i / WARPS), both = fmaxf(top, m);
        s = s * expf(top - both) + peer(sums + i % WARPS, i / WARPS) * expf(m - both);
        top = both;
    }
    float all = top;
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        all = fmaxf(all, __shfl_xor_sync(~0u, all, d));
    s *= expf(top - all);
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    *most = all;
    *sum = s;
}

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

/* `count` numbers are this block's share, perhaps none. */
template <bool WIDE>
static __device__ __forceinline__ void share(const float *x, float *y, long long count,
                                             float *mosts, float *sums)
{
    constexpr long long STEP = 4ll * BLOCK;
    const long long at = WIDE ? 4ll * threadIdx.x : threadIdx.x;
    float v[ITEMS][4], most = LEAST, sum = 0;
    for (long long n = at; n < count; n += ITEMS * STEP) {
        float top = most;
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load<WIDE>(x + n + i * STEP, count - n - i * STEP, v[i]);
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            top = fmaxf(top, fmaxf(fmaxf(v[i][0], v[i][1]), fmaxf(v[i][2], v[i][3])));
        sum *= expf(most - top);
        most = top;
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                sum += n + i * STEP + (WIDE ? 0 : c * BLOCK) < count ? expf(v[i][c] - most) : 0.0f;
    }
    join_all(&most, &sum, mosts, sums);
    const float scale = 1.0f / sum;
    const bool kept = count <= ITEMS * STEP; /* v holds the whole share */
    for (long long n = at; n < count; n += ITEMS * STEP) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            if (!kept)
                load<WIDE>(x + n + i * STEP, count - n - i * STEP, v[i]);
#pragma unroll
            for (int c = 0; c < 4; c++)
                v[i][c] = expf(v[i][c] - most) * scale;
            store<WIDE>(y + n + i * STEP, count - n - i * STEP, v[i]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, (RESIDENT + BLOCK - 1) / BLOCK)
    softmax(const float *__restrict__ X, float *__restrict__ Y, long long N)
{
    __shared__ float mosts[32], sums[32];
    const long long each = ((N + SIZE - 1) / SIZE + 3) / 4 * 4, begin = blockIdx.x % SIZE * each;
    const long long count = max(min(N - begin, each), 0ll), first = blockIdx.x / SIZE * N + begin;
    if (N % 4 == 0)
        share<true>(X + first, Y + first, count, mosts, sums);
    else
        share<false>(X + first, Y + first, count, mosts, sums);
    meet(); /* nobody leaves while its shared memory is read */
}
