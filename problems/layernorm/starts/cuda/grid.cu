/*---
launch:
  - entry: layernorm
    grid: sm_count
    block: 512
    shared: 1024 * (RING + 8 * KEPT) + 3072
    cooperative: true
    args: [X, gamma, beta, Y, parts, M, N]
workspace:
  parts: {shape: [M, 256, 2], dtype: float32}
memset: {parts: 255}
tune:
  EACH: [2, 1, 4]
  HELD: [16, 20, 12, 8, 0]
  KEPT: [0, 4, 8]
  RING: [224, 192, 160]
  AHEAD: [0, 8]
  where: sm_count <= 256 && HELD % EACH == 0 && KEPT % EACH == 0 && RING + 8 * KEPT <= 224
---*/
/* Few very long rows: all multiprocessors together hold a row, each the same columns of every one,
 * so that most of gamma and beta is read once: HELD vectors of four a thread stay in registers,
 * KEPT in shared memory. One thread copies X in slices into a ring in shared memory (AHEAD slices
 * more as far as L2). A second warpgroup takes the means and squares of what arrives (joined by
 * Chan's formula, which does not cancel) and tells those of its columns to all blocks: one word of
 * 64 bits in `parts`, told once not all of its bits are set. Two more write the row before, so that
 * reading, agreeing on a row's mean and writing overlap. Rows that do not fit the ring, or are not
 * aligned to 16 bytes, are read twice. */
#define THREADS 256 /* that write; half as many take moments */
#define TAKERS  128
#define SLICE   (EACH * THREADS) /* in vectors of four, as all below */
#define SLOTS   (RING * 64 / SLICE)
#define AWAY    ((HELD + KEPT) / EACH) /* the first slice whose gamma and beta stay in L2 */
#define BLOCKS  256

struct moments {
    float count, mean, squares;
};

struct shared {
    unsigned long long full[SLOTS], empty[SLOTS], known[SLOTS];
    float2 row[SLOTS]; /* mean and 1 / deviation of row m at m % SLOTS, once that is known */
    struct moments part[2][THREADS / 32]; /* rows take turns */
};

/* A block's columns: `quads` vectors from `begin` on, of N numbers in rows of `each` a block. */
struct share {
    long long begin, each, N;
    int quads, slices;
};

static __device__ __forceinline__ struct moments join(struct moments a, struct moments b)
{
    const float count = a.count + b.count, share = count > 0 ? __fdividef(b.count, count) : 0.0f,
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

static __device__ __forceinline__ unsigned address(const void *shared)
{
    return (unsigned)__cvta_generic_to_shared(shared);
}

static __device__ __forceinline__ void barrier_init(const unsigned long long *barrier,
                                                    unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(count)
                 : "memory");
}

static __device__ __forceinline__ void wait_for(const unsigned long long *barrier, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(address(barrier)), "r"(parity)
                     : "memory");
}

static __device__ __forceinline__ void arrive(const unsigned long long *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}

/* A place in a ring of SLOTS, and the parity of this time round. */
struct place {
    int slot;
    unsigned parity;
};

static __device__ __forceinline__ void advance(struct place *place)
{
    if (++place->slot == SLOTS) {
        place->slot = 0;
        place->parity ^= 1;
    }
}

/* --- what blocks tell each other --- */

static __device__ __forceinline__ struct moments told_by(unsigned long long word, int block,
                                                         const struct share *s)
{
    const long long left = s->N - block * s->each;
    return {(float)(left < s->each ? left : s->each), __uint_as_float((unsigned)word),
            __uint_as_float((unsigned)(word >> 32))};
}

/* Of one row, by the first warp: this block's moments out, everybody's in. */
static __device__ __forceinline__ struct moments
exchange(struct moments own, int lane, unsigned long long *told, const struct share *s)
{
    const int blocks = (int)((s->N + s->each - 1) / s->each);
    unsigned long long words[BLOCKS / 32];
    bool waiting;
    if (lane == 0) {
        const unsigned low = __float_as_uint(own.mean == own.mean ? own.mean : INFINITY - INFINITY);
        const unsigned long long word =
            (unsigned long long)__float_as_uint(own.squares) << 32 | (low == ~0u ? ~1u : low);
        asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(told + blockIdx.x), "l"(word)
                     : "memory");
    }
    do {
        waiting = false;
#pragma unroll
        for (int i = 0; i < BLOCKS / 32; i++)
            if (lane + 32 * i < blocks)
                asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];"
                             : "=l"(words[i])
                             : "l"(told + lane + 32 * i)
                             : "memory");
#pragma unroll
        for (int i = 0; i < BLOCKS / 32; i++)
            waiting = waiting || (lane + 32 * i < blocks && words[i] == ~0ull);
    } while (waiting);
    __syncwarp();
    struct moments all = {0, 0, 0};
#pragma unroll
    for (int i = 0; i < BLOCKS / 32; i++)
        if (lane + 32 * i < blocks)
            all = join(all, told_by(words[i], lane + 32 * i, s));
    return join_warp(all);
}

/* From the moments of each of `threads` to the row's mean and 1 / deviation, in the first warp. */
static __device__ __forceinline__ float2 row_of(struct moments own, int thread, int threads,
                                                struct shared *shared, unsigned long long *parts,
                                                long long m, const struct share *s)
{
    struct moments *part = shared->part[m % 2];
    own = join_warp(own);
    if (thread % 32 == 0)
        part[thread / 32] = own;
    asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
    if (thread >= 32)
        return {0, 0};
    own = join_warp(thread < threads / 32 ? part[thread] : moments{0, 0, 0});
    own = exchange(own, thread, parts + m * BLOCKS, s);
    return {own.mean, 1.0f / sqrtf(own.squares / (float)s->N + 1e-5f)};
}

/* --- numbers --- */

/* A thread's vectors of a slice; of those from `quads` on nothing is taken. */
static __device__ __forceinline__ struct moments gather(const float4 *slice, int at, int quads,
                                                        struct moments all)
{
    float4 v[SLICE / TAKERS];
    struct moments run = {0, 0, 0};
#pragma unroll
    for (int e = 0; e < SLICE / TAKERS; e++) {
        v[e] = slice[e * TAKERS];
        if (at + e * TAKERS < quads) {
            run.mean += (v[e].x + v[e].y) + (v[e].z + v[e].w);
            run.count += 4;
        }
    }
    run.mean *= run.count > 0 ? __fdividef(1.0f, run.count) : 0.0f;
#pragma unroll
    for (int e = 0; e < SLICE / TAKERS; e++) {
        const float a = v[e].x - run.mean, b = v[e].y - run.mean, c = v[e].z - run.mean,
                    d = v[e].w - run.mean;
        if (at + e * TAKERS < quads)
            run.squares += (a * a + b * b) + (c * c + d * d);
    }
    return join(all, run);
}

static __device__ __forceinline__ float4 normalized(float4 v, float2 row, float4 g, float4 b)
{
    return make_float4(fmaf((v.x - row.x) * row.y, g.x, b.x), fmaf((v.y - row.x) * row.y, g.y, b.y),
                       fmaf((v.z - row.x) * row.y, g.z, b.z),
                       fmaf((v.w - row.x) * row.y, g.w, b.w));
}

/* --- rows that fit the ring --- */

static __device__ __forceinline__ void prefetch(const float4 *from, int quads,
                                                unsigned long long policy)
{
    asm volatile("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, %2;" ::"l"(from),
                 "r"(16 * quads), "l"(policy)
                 : "memory");
}

/* The copying warp's one thread. */
static __device__ void copy(const float *X, const struct share *s, float4 *ring,
                            struct shared *shared, long long M)
{
    struct place place = {0, 1};
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    for (long long m = 0; m < M; m++)
        for (int k = 0; k < s->slices; k++) {
            const float4 *from = (const float4 *)(X + m * s->N + s->begin) + k * SLICE;
            const int quads = min(SLICE, s->quads - k * SLICE);
            if (AHEAD > 0) {
                const int later = (k + AHEAD) % s->slices;
                const long long row = m + (k + AHEAD) / s->slices;
                if (row < M)
                    prefetch((const float4 *)(X + row * s->N + s->begin) + later * SLICE,
                             min(SLICE, s->quads - later * SLICE), policy);
            }
            wait_for(&shared->empty[place.slot], place.parity);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                             address(&shared->full[place.slot])),
                         "r"(16 * quads)
                         : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                             address(ring + place.slot * SLICE)),
                         "l"(from), "r"(16 * quads), "r"(address(&shared->full[place.slot])),
                         "l"(policy)
                         : "memory");
            advance(&place);
        }
}

/* The second warpgroup. A slot of `row` is free again: what is in the ring now has pushed out a
 * slice of the row that had it. */
static __device__ void take(unsigned long long *parts, const struct share *s, const float4 *ring,
                            struct shared *shared, long long M, int thread)
{
    struct place place = {0, 0}, row = {0, 0};
    for (long long m = 0; m < M; m++) {
        struct moments all = {0, 0, 0};
        for (int k = 0; k < s->slices; k++) {
            wait_for(&shared->full[place.slot], place.parity);
            all = gather(ring + place.slot * SLICE + thread, k * SLICE + thread, s->quads, all);
            advance(&place);
        }
        const float2 found = row_of(all, thread, TAKERS, shared, parts, m, s);
        if (thread == 0) {
            shared->row[row.slot] = found;
            arrive(&shared->known[row.slot]);
        }
        advance(&row);
    }
}

struct writer {
    const struct share *s;
    const float4 *ring;
    struct shared *shared;
    struct place now;
    int thread;
};

/* Slice k of a row. */
static __device__ __forceinline__ void step(struct writer *w, int k, float2 row, const float4 *g,
                                            const float4 *b, float4 *y)
{
    const float4 *slice = w->ring + w->now.slot * SLICE + w->thread;
    const int at = k * SLICE + w->thread;
    float4 v[EACH];
    wait_for(&w->shared->full[w->now.slot], w->now.parity);
#pragma unroll
    for (int e = 0; e < EACH; e++)
        v[e] = slice[e * THREADS];
    __syncwarp();
    if (w->thread % 32 == 0)
        arrive(&w->shared->empty[w->now.slot]);
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (at + e * THREADS < w->s->quads)
            __stcs(y + at + e * THREADS, normalized(v[e], row, g[e], b[e]));
    advance(&w->now);
}

/* EACH vectors of gamma or beta, which L2 is asked to keep. */
static __device__ __forceinline__ void load(const float *from, const struct share *s, int thread,
                                            int k, float4 *v)
{
    const int at = k * SLICE + thread;
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (at + e * THREADS < s->quads)
            asm("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                : "=f"(v[e].x), "=f"(v[e].y), "=f"(v[e].z), "=f"(v[e].w)
                : "l"((const float4 *)(from + s->begin) + at + e * THREADS), "l"(policy));
}

/* What is not on the multiprocessor: slice k is taken, and the next such slice asked for. */
static __device__ __forceinline__ void turn(const float *from, const struct share *s, int thread,
                                            int k, float4 *next, float4 *v)
{
#pragma unroll
    for (int e = 0; e < EACH; e++)
        v[e] = next[e];
    load(from, s, thread, k + 1 < s->slices ? k + 1 : AWAY, next);
}

static __device__ __forceinline__ void write(const float *gamma, const float *beta, float *Y,
                                             long long M, const struct share *s, const float4 *ring,
                                             float4 *kept, struct shared *shared, int thread)
{
    struct writer w = {s, ring, shared, {0, 0}, thread};
    struct place place = {0, 0};
    float4 g[HELD + 1], b[HELD + 1], next_g[EACH], next_b[EACH], g1[EACH], b1[EACH];
    kept += thread;
#pragma unroll
    for (int k = 0; k < HELD / EACH; k++) {
        load(gamma, s, thread, k, g + k * EACH);
        load(beta, s, thread, k, b + k * EACH);
    }
    for (int k = 0; k < KEPT / EACH; k++) {
        load(gamma, s, thread, HELD / EACH + k, g1);
        load(beta, s, thread, HELD / EACH + k, b1);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            kept[(k * EACH + e) * THREADS] = g1[e];
            kept[(k * EACH + e + KEPT) * THREADS] = b1[e];
        }
    }
    load(gamma, s, thread, AWAY, next_g);
    load(beta, s, thread, AWAY, next_b);
    for (long long m = 0; m < M; m++) {
        wait_for(&shared->known[place.slot], place.parity);
        const float2 row = shared->row[place.slot];
        float4 *y = (float4 *)(Y + m * s->N + s->begin);
        advance(&place);
#pragma unroll
        for (int k = 0; k < HELD / EACH; k++)
            if (k < s->slices)
                step(&w, k, row, g + k * EACH, b + k * EACH, y);
        for (int k = HELD / EACH; k < min(AWAY, s->slices); k++) {
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                g1[e] = kept[(k * EACH - HELD + e) * THREADS];
                b1[e] = kept[(k * EACH - HELD + e + KEPT) * THREADS];
            }
            step(&w, k, row, g1, b1, y);
        }
        for (int k = AWAY; k < s->slices; k++) {
            turn(gamma, s, thread, k, next_g, g1);
            turn(beta, s, thread, k, next_b, b1);
            step(&w, k, row, g1, b1, y);
        }
    }
}

/* --- all other rows --- */

static __device__ void twice(const float *X, const float *gamma, const float *beta, float *Y,
                             unsigned long long *parts, long long M, const struct share *s,
                             struct shared *shared, int thread)
{
    const long long end = min(s->begin + s->each, s->N);
    for (long long m = 0; m < M; m++) {
        const float *x = X + m * s->N;
        struct moments all = {0, 0, 0};
        for (long long n = s->begin + thread; n < end; n += 8 * THREADS) {
            float v[8];
            struct moments run = {0, 0, 0};
#pragma unroll
            for (int i = 0; i < 8; i++) {
                v[i] = n + i * THREADS < end ? x[n + i * THREADS] : 0.0f;
                run.mean += v[i];
                run.count += n + i * THREADS < end ? 1.0f : 0.0f;
            }
            run.mean = __fdividef(run.mean, run.count);
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (n + i * THREADS < end)
                    run.squares += (v[i] - run.mean) * (v[i] - run.mean);
            all = join(all, run);
        }
        float2 row = row_of(all, thread, THREADS, shared, parts, m, s);
        if (thread == 0)
            shared->row[0] = row;
        asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
        row = shared->row[0];
        for (long long n = s->begin + thread; n < end; n += THREADS)
            Y[m * s->N + n] = fmaf((x[n] - row.x) * row.y, gamma[n], beta[n]);
    }
}

extern "C" __global__ void __launch_bounds__(512, 1)
    layernorm(const float *__restrict__ X, const float *__restrict__ gamma,
              const float *__restrict__ beta, float *__restrict__ Y,
              unsigned long long *__restrict__ parts, long long M, long long N)
{
    extern __shared__ __align__(128) float4 ring[];
    float4 *kept = ring + SLOTS * SLICE;
    struct shared *shared = (struct shared *)(kept + 2 * KEPT * THREADS);
    const long long each = ((N + gridDim.x - 1) / gridDim.x + 31) / 32 * 32,
                    begin = blockIdx.x * each;
    const long long quads = min(each, N - begin) / 4, slices = (quads + SLICE - 1) / SLICE;
    const struct share s = {begin, each, N, (int)quads, (int)slices};
    const bool fits = N % 4 == 0 && (each / 4 + SLICE - 1) / SLICE <= SLOTS;
    if (begin >= N)
        return;
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) {
            barrier_init(&shared->full[i], 1);
            barrier_init(&shared->empty[i], THREADS / 32);
            barrier_init(&shared->known[i], 1);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x / 128 == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (fits && threadIdx.x == 0)
            copy(X, &s, ring, shared, M);
    } else if (threadIdx.x / 128 == 1) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
        if (fits)
            take(parts, &s, ring, shared, M, threadIdx.x - 128);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 208;");
        if (fits)
            write(gamma, beta, Y, M, &s, ring, kept, shared, threadIdx.x - 256);
        else
            twice(X, gamma, beta, Y, parts, M, &s, shared, threadIdx.x - 256);
    }
}
