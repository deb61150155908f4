/*---
launch:
  - entry: layernorm
    grid: M * SIZE
    block: BLOCK
    cluster: SIZE
    args: [X, gamma, beta, Y, N]
tune:
  SIZE: [2, 4, 8]
  BLOCK: [512, 256, 1024]
  ITEMS: [4, 2, 8, 1]
  RESIDENT: [1024, 1536, 2048, 768, 512]
  where: BLOCK * ITEMS <= 4096
---*/
/* A cluster of SIZE blocks a row: each holds its share in registers, reads it once, and learns the
 * others' means and squares of deviations through their shared memory (joined by Chan's formula,
 * which does not cancel). For rows too long for one block's registers and too few to keep many
 * blocks a processor at work. Shares of more than 4 * ITEMS * BLOCK numbers are read twice. */
#define WARPS (BLOCK / 32)

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

/* What a block of the cluster has at this place of its shared memory. */
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

/* The row's moments, from those of all threads of the cluster. */
static __device__ __forceinline__ struct moments join_all(struct moments own, struct moments *part)
{
    const int lane = threadIdx.x % 32;
    own = join_warp(own);
    if (lane == 0)
        part[threadIdx.x / 32] = own;
    meet(); /* all warps of all blocks have written */
    struct moments all = {0, 0, 0};
    for (int i = lane; i < SIZE * WARPS; i += 32) {
        const struct moments *of = part + i % WARPS;
        all = join(all, {peer(&of->count, i / WARPS), peer(&of->mean, i / WARPS),
                         peer(&of->squares, i / WARPS)});
    }
    return join_warp(all);
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

/* Of ITEMS * 4 numbers of a thread, `left` of the block's share being left from its first on. */
template <bool WIDE>
static __device__ __forceinline__ struct moments moments_of(const float (*v)[4], long long left)
{
    constexpr long long STEP = 4ll * BLOCK;
    struct moments run = {0, 0, 0};
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            run.mean += v[i][c];
            run.count += i * STEP + (WIDE ? 0 : c * BLOCK) < left ? 1.0f : 0.0f;
        }
    run.mean = run.count > 0 ? run.mean / run.count : 0.0f;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const float d = v[i][c] - run.mean;
            run.squares += i * STEP + (WIDE ? 0 : c * BLOCK) < left ? d * d : 0.0f;
        }
    return run;
}

/* `count` numbers are this block's share of the row of N, perhaps none. */
template <bool WIDE>
static __device__ __forceinline__ void share(const float *x, const float *gamma, const float *beta,
                                             float *y, long long count, long long N,
                                             struct moments *part)
{
    constexpr long long STEP = 4ll * BLOCK;
    const long long at = WIDE ? 4ll * threadIdx.x : threadIdx.x;
    float v[ITEMS][4];
    struct moments all = {0, 0, 0};
    for (long long n = at; n < count; n += ITEMS * STEP) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load<WIDE>(x + n + i * STEP, count - n - i * STEP, v[i]);
        all = join(all, moments_of<WIDE>(v, count - n));
    }
    all = join_all(all, part);
    const float scale = 1.0f / sqrtf(all.squares / (float)N + 1e-5f);
    const bool kept = count <= ITEMS * STEP; /* v holds the whole share */
    for (long long n = at; n < count; n += ITEMS * STEP) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const long long k = n + i * STEP;
            if (!kept)
                load<WIDE>(x + k, count - k, v[i]);
            finish<WIDE>(v[i], all.mean, scale, gamma + k, beta + k, y + k, count - k);
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, (RESIDENT + BLOCK - 1) / BLOCK)
    layernorm(const float *__restrict__ X, const float *__restrict__ gamma,
              const float *__restrict__ beta, float *__restrict__ Y, long long N)
{
    __shared__ struct moments part[32];
    const long long each = ((N + SIZE - 1) / SIZE + 3) / 4 * 4, begin = blockIdx.x % SIZE * each;
    const long long count = max(min(N - begin, each), 0ll), first = blockIdx.x / SIZE * N + begin;
    if (N % 4 == 0)
        share<true>(X + first, gamma + begin, beta + begin, Y + first, count, N, part);
    else
        share<false>(X + first, gamma + begin, beta + begin, Y + first, count, N, part);
    meet(); /* nobody leaves while its shared memory is read */
}
