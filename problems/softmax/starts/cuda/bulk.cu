/*---
launch:
  - entry: softmax
    grid: M
    block: BLOCK
    shared: min(4 * N, 1024 * KB)
    args: [X, Y, N]
tune:
  BLOCK: [384, 1024, 256, 512]
  KB: [64, 96, 32, 224]
  PARTS: [2, 1, 4, 8]
  STREAM: [0, 1]
---*/
/* A block a row, and several blocks a processor, so that one's loads are on their way while another
 * computes or writes; the hardware deals the rows out. The copy engine brings the row to shared
 * memory in PARTS, whose maxima are taken as they come; it is read once from memory and three times
 * from there. With STREAM the caches are told that the
 * result is not read again. Rows of more than KB kilobytes, or not aligned to 16 bytes, are read
 * twice from memory. */
#define LEAST -3.402823466e38f
#define WARPS (BLOCK / 32)
#define LOG2E 1.44269504f

static __device__ __forceinline__ unsigned address(const void *shared)
{
    return (unsigned)__cvta_generic_to_shared(shared);
}

static __device__ __forceinline__ void barrier_wait(const unsigned long long *barrier)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(address(barrier))
                     : "memory");
}

static __device__ __forceinline__ void fetch(float4 *to, const float4 *from, unsigned bytes,
                                             const unsigned long long *barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)),
                 "r"(bytes)
                 : "memory");
    if (bytes > 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1], %2, [%3];" ::"r"(address(to)),
                     "l"(from), "r"(bytes), "r"(address(barrier))
                     : "memory");
}

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

static __device__ __forceinline__ float weight(float x, float most)
{
    return exp2f((x - most) * LOG2E);
}

static __device__ __forceinline__ void put(float4 *to, float4 v)
{
    if (STREAM)
        __stcs(to, v);
    else
        *to = v;
}

/* A row of `quads` times four numbers that shared memory has room for. */
static __device__ __forceinline__ void once(const float4 *from, float4 *y, int quads, float4 *x,
                                            unsigned long long *full, float *part)
{
    const int each = (quads + PARTS - 1) / PARTS;
    if (threadIdx.x == 0) {
        for (int p = 0; p < PARTS; p++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(full + p))
                         : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int p = 0; p < PARTS; p++) {
            const int begin = min(p * each, quads), end = min(begin + each, quads);
            fetch(x + begin, from + begin, 16 * (end - begin), full + p);
        }
    }
    __syncthreads();
    float most = LEAST, sum = 0;
#pragma unroll 1
    for (int p = 0; p < PARTS; p++) {
        barrier_wait(full + p);
        const int end = min((p + 1) * each, quads);
#pragma unroll 4
        for (int i = p * each + threadIdx.x; i < end; i += BLOCK)
            most = fmaxf(most, fmaxf(fmaxf(x[i].x, x[i].y), fmaxf(x[i].z, x[i].w)));
    }
    most = all_of<true>(most, part);
#pragma unroll 4
    for (int i = threadIdx.x; i < quads; i += BLOCK)
        sum += (weight(x[i].x, most) + weight(x[i].y, most)) +
               (weight(x[i].z, most) + weight(x[i].w, most));
    const float scale = 1.0f / all_of<false>(sum, part + 32);
#pragma unroll 4
    for (int i = threadIdx.x; i < quads; i += BLOCK) {
        const float4 v = x[i];
        put(y + i, make_float4(weight(v.x, most) * scale, weight(v.y, most) * scale,
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

extern "C" __global__ void __launch_bounds__(BLOCK)
    softmax(const float *__restrict__ X, float *__restrict__ Y, long long N)
{
    extern __shared__ __align__(128) float4 kept[];
    __shared__ unsigned long long full[PARTS];
    __shared__ float part[64];
    const float *x = X + blockIdx.x * N;
    float *y = Y + blockIdx.x * N;
    if (N % 4 == 0 && N <= 256ll * KB)
        once((const float4 *)x, (float4 *)y, (int)(N / 4), kept, full, part);
    else
        twice(x, y, N, part);
}
