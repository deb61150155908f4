/*---
launch:
  - entry: softmax
    grid: min(M, sm_count)
    block: BLOCK
    shared: 1024 * KB + 1024
    args: [X, Y, M, N]
tune:
  BLOCK: [1024, 512, 768]
  KB: [224, 192, 96]
  SLOTS: [8, 4, 3]
---*/
/* One block a processor stays and takes row after row out of a ring in shared memory, which the
 * copy engine fills: up to SLOTS rows are on their way while one is computed, whatever the threads
 * wait for. Each row is read once from memory and three times from shared memory. Rows that do not
 * fit twice into KB kilobytes, or are not aligned to 16 bytes, are read twice from memory. */
#define LEAST -3.402823466e38f
#define WARPS (BLOCK / 32)
#define LOG2E 1.44269504f

static __device__ __forceinline__ void barrier_init(unsigned long long *barrier)
{
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(barrier))
        : "memory");
}

static __device__ __forceinline__ void barrier_wait(unsigned long long *barrier, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(parity)
                     : "memory");
}

static __device__ __forceinline__ void fetch(float *to, const float *from, unsigned bytes,
                                             unsigned long long *barrier)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(barrier);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"((unsigned)__cvta_generic_to_shared(to)),
        "l"(from), "r"(bytes), "r"(at)
        : "memory");
}

/* The largest of a block's numbers, or their sum. Ends with no barrier: the next use of `part` is
 * behind another one. */
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

static __device__ __forceinline__ float weight(float x, float most)
{
    return exp2f((x - most) * LOG2E);
}

/* A row in shared memory, of `quads` times four numbers. */
static __device__ __forceinline__ void finish(const float4 *x, float4 *y, int quads, float *part)
{
    float most = LEAST, sum = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < quads; i += BLOCK)
        most = fmaxf(most, fmaxf(fmaxf(x[i].x, x[i].y), fmaxf(x[i].z, x[i].w)));
    most = all_of<true>(most, part);
#pragma unroll 4
    for (int i = threadIdx.x; i < quads; i += BLOCK)
        sum += (weight(x[i].x, most) + weight(x[i].y, most)) +
               (weight(x[i].z, most) + weight(x[i].w, most));
    const float scale = 1.0f / all_of<false>(sum, part + 32);
#pragma unroll 4
    for (int i = threadIdx.x; i < quads; i += BLOCK) {
        const float4 v = x[i];
        __stcs(y + i, make_float4(weight(v.x, most) * scale, weight(v.y, most) * scale,
                                  weight(v.z, most) * scale, weight(v.w, most) * scale));
    }
}

/* A row of any length and alignment. */
static __device__ void twice(const float *x, float *y, long long N, float *part)
{
    float most = LEAST, sum = 0;
    for (long long n = threadIdx.x; n < N; n += 4 * BLOCK) {
        float v[4], top = most;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            v[c] = n + c * BLOCK < N ? x[n + c * BLOCK] : LEAST;
            top = fmaxf(top, v[c]);
        }
        sum *= weight(most, top);
        most = top;
#pragma unroll
        for (int c = 0; c < 4; c++)
            sum += n + c * BLOCK < N ? weight(v[c], most) : 0.0f;
    }
    const float largest = all_of<true>(most, part);
    const float scale = 1.0f / all_of<false>(sum * weight(most, largest), part + 32);
#pragma unroll 4
    for (long long n = threadIdx.x; n < N; n += BLOCK)
        y[n] = weight(x[n], largest) * scale;
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1)
    softmax(const float *__restrict__ X, float *__restrict__ Y, long long M, long long N)
{
    extern __shared__ __align__(128) float rows[];
    __shared__ unsigned long long full[SLOTS];
    __shared__ float part[64];
    const int slots = (int)min((long long)SLOTS, KB * 256ll / N);
    if (N % 4 != 0 || slots < 2) {
        for (long long row = blockIdx.x; row < M; row += gridDim.x) {
            twice(X + row * N, Y + row * N, N, part);
            __syncthreads();
        }
        return;
    }
    const unsigned bytes = (unsigned)(4 * N);
    if (threadIdx.x == 0) {
        for (int s = 0; s < slots; s++)
            barrier_init(full + s);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int s = 0; s < slots; s++)
            if (blockIdx.x + (long long)s * gridDim.x < M)
                fetch(rows + s * N, X + (blockIdx.x + (long long)s * gridDim.x) * N, bytes,
                      full + s);
    }
    __syncthreads();
    int slot = 0;
    unsigned parity = 0;
    for (long long row = blockIdx.x; row < M; row += gridDim.x) {
        const long long next = row + (long long)slots * gridDim.x;
        barrier_wait(full + slot, parity);
        finish((const float4 *)(rows + slot * N), (float4 *)(Y + row * N), (int)(N / 4), part);
        __syncthreads(); /* the slot was read by all */
        if (threadIdx.x == 0 && next < M)
            fetch(rows + slot * N, X + next * N, bytes, full + slot);
        if (++slot == slots) {
            slot = 0;
            parity ^= 1;
        }
    }
}
