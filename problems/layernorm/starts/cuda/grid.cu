/*---
launch:
  - entry: layernorm
    grid: sm_count
    block: 512
    shared: 1024 * RING + 3072
    cooperative: true
    args: [X, gamma, beta, Y, parts, M, N]
workspace:
  parts: {shape: [M, 160, 2], dtype: float32}
tune:
  EACH: [2, 1, 4]
  HELD: [18, 16, 20, 14, 12]
  EARLY: [4, 6, 5, 3, 2]
  WINDOW: [4, 5, 6, 3, 8]
  RING: [224, 192, 160]
  where: >
    sm_count <= 160 && HELD % EACH == 0 && EARLY * EACH <= HELD && WINDOW * EACH <= 16 &&
    8 * HELD + 4 * EACH * EARLY + 12 * EACH <= 200
---*/
/* Few very long rows: all multiprocessors together hold a row, each the same slices of every one,
 * so that half of gamma and beta is read once (HELD vectors of four a thread stay in registers) and
 * the rest comes from L2. One thread copies X in slices into a ring in shared memory, WINDOW at a
 * time: of more, those of the next row would be before another block's last of this one, for which
 * all wait. A second warpgroup takes the means and squares of what arrives (joined by Chan's
 * formula, which does not cancel) and tells those of its slices to all blocks: one word of 64 bits
 * in `parts`, told once not all of its bits are set. A warp hears them all, once all blocks have set
 * theirs at the start: the barrier that the driver has for cooperative launches tells. Two
 * warpgroups write the row before; they have taken its first EARLY slices into registers before they
 * know its mean, so that there is room for the rest of the next row. Rows that do not fit the ring,
 * are too short or not aligned to 16 bytes are read twice. */
#define THREADS 256 /* that write; half as many take moments */
#define TAKERS  128
#define TAKEN   (EACH == 1 ? 2 : 4) /* vectors at a time and thread */
#define SLICE   (EACH * THREADS)    /* in vectors of four, as all below */
#define SLOTS   (RING * 64 / SLICE)
#define AWAY    (HELD / EACH) /* the first slice whose gamma and beta stay in L2 */
#define KNOWN   (SLOTS + EARLY + 1)
#define BLOCKS  160

static __device__ __forceinline__ int rank()
{
    return (int)blockIdx.x;
}

static __device__ __forceinline__ int blocks()
{
    return (int)gridDim.x;
}

struct moments {
    float count, mean, squares;
};

struct shared {
    unsigned long long full[SLOTS], empty[SLOTS], known[KNOWN], told[KNOWN];
    float2 row[KNOWN]; /* mean and 1 / deviation of row m at m % KNOWN, once that is known */
    struct moments part[2][THREADS / 32]; /* rows take turns */
};

/* How a row of N numbers is dealt out: a slice to each block, `whole` times, and then `tail`
 * numbers of the `rest`. */
struct row {
    long long N, rest;
    int whole, tail;
};

/* A block's slices of rows that fit the ring, in vectors; `quads` has the row. */
struct share {
    long long N;
    int quads, first, stride, whole, last, tail, slices;
    unsigned never; /* 0, which the compiler does not know */
};

static __device__ __forceinline__ struct row row_of(long long N)
{
    const long long all = blocks() * 4ll * SLICE, whole = N / all, rest = N - whole * all;
    return {N, rest, (int)whole, (int)((rest + 32 * blocks() - 1) / (32 * blocks()) * 32)};
}

/* Numbers of block i. */
static __device__ __forceinline__ long long count_of(struct row r, int i)
{
    return r.whole * 4ll * SLICE + max(0ll, min((long long)r.tail, r.rest - (long long)i * r.tail));
}

/* Where a slice begins, and how many vectors it has. */
struct slice {
    int begin, length;
};

static __device__ __forceinline__ struct slice whole_slice(const struct share *s, int k)
{
    return {s->first + k * s->stride, SLICE};
}

static __device__ __forceinline__ struct slice any_slice(const struct share *s, int k)
{
    return k < s->whole ? whole_slice(s, k) : slice{s->last, s->tail};
}

static __device__ __forceinline__ bool has(struct slice slice, int thread, int e)
{
    return slice.length == SLICE || thread + e * THREADS < slice.length;
}

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

/* Slots of shared memory may be written again, of which `read` was read: its numbers must have come
 * before the barrier is told, and `never` is 0. */
static __device__ __forceinline__ void give_back(const unsigned long long *barrier, unsigned read,
                                                 unsigned never)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        asm volatile(
            "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier) + (read & never))
            : "memory");
}

/* A place in a ring, and the parity of this time round. */
struct place {
    int slot;
    unsigned parity;
};

static __device__ __forceinline__ void advance(struct place *place, int slots)
{
    if (++place->slot == slots) {
        place->slot = 0;
        place->parity ^= 1;
    }
}

/* --- what blocks tell each other --- */

/* Of one row, by one thread. */
static __device__ __forceinline__ void tell(struct moments own, unsigned long long *told)
{
    const unsigned low = __float_as_uint(own.mean == own.mean ? own.mean : INFINITY - INFINITY);
    const unsigned long long word =
        (unsigned long long)__float_as_uint(own.squares) << 32 | (low == ~0u ? ~1u : low);
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(told + rank()), "l"(word) : "memory");
}

/* What cooperative_groups.h's grid.sync() does, in halves, each for one thread of a block: the word's
 * uppermost bit turns when all have come. */
struct meeting {
    const volatile unsigned *word;
    unsigned before;
};

static __device__ __forceinline__ struct meeting come()
{
    unsigned high, low;
    asm("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm("mov.u32 %0, %%envreg2;" : "=r"(low));
    unsigned *word = (unsigned *)((unsigned long long)high << 32 | low) + 1;
    __threadfence();
    return {word, atomicAdd(word, rank() == 0 ? 0x80000000u - (blocks() - 1) : 1u)};
}

static __device__ __forceinline__ void await_all(struct meeting meeting)
{
    while (((meeting.before ^ *meeting.word) & 0x80000000u) == 0)
        ;
    __threadfence();
}

/* A row's mean and 1 / deviation from what all blocks tell, by one warp. */
static __device__ __forceinline__ float2 hear(const unsigned long long *told, struct row r)
{
    const int lane = threadIdx.x % 32;
    const int tellers = r.whole > 0 ? blocks() : (int)((r.rest + r.tail - 1) / r.tail);
    unsigned long long words[BLOCKS / 32];
    struct moments all = {0, 0, 0};
    bool waiting;
    do {
        waiting = false;
#pragma unroll
        for (int i = 0; i < BLOCKS / 32; i++)
            if (lane + 32 * i < tellers)
                asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];"
                             : "=l"(words[i])
                             : "l"(told + lane + 32 * i)
                             : "memory");
#pragma unroll
        for (int i = 0; i < BLOCKS / 32; i++)
            waiting = waiting || (lane + 32 * i < tellers && words[i] == ~0ull);
    } while (waiting);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < BLOCKS / 32; i++)
        if (lane + 32 * i < tellers)
            all = join(all, {(float)count_of(r, lane + 32 * i), __uint_as_float((unsigned)words[i]),
                             __uint_as_float((unsigned)(words[i] >> 32))});
    all = join_warp(all);
    return {all.mean, 1.0f / sqrtf(all.squares / (float)r.N + 1e-5f)};
}

/* From the moments of each of `threads` to the block's, in the first warp of them. */
static __device__ __forceinline__ struct moments joined(struct moments own, int thread, int threads,
                                                        struct shared *shared, long long m)
{
    struct moments *part = shared->part[m % 2];
    own = join_warp(own);
    if (thread % 32 == 0)
        part[thread / 32] = own;
    asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
    if (thread >= 32)
        return own;
    return join_warp(thread < threads / 32 ? part[thread] : moments{0, 0, 0});
}

/* --- numbers --- */

/* TAKEN of a thread's vectors of a slice; of those from `quads` on nothing is taken. */
static __device__ __forceinline__ struct moments gather(const float4 *slice, int at, int length,
                                                        struct moments all)
{
    float4 v[TAKEN];
    struct moments run = {0, 0, 0};
#pragma unroll
    for (int e = 0; e < TAKEN; e++) {
        v[e] = slice[e * TAKERS];
        if (at + e * TAKERS < length) {
            run.mean += (v[e].x + v[e].y) + (v[e].z + v[e].w);
            run.count += 4;
        }
    }
    run.mean *= run.count > 0 ? __fdividef(1.0f, run.count) : 0.0f;
#pragma unroll
    for (int e = 0; e < TAKEN; e++) {
        const float a = v[e].x - run.mean, b = v[e].y - run.mean, c = v[e].z - run.mean,
                    d = v[e].w - run.mean;
        if (at + e * TAKERS < length)
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

/* The copying warp's one thread. */
static __device__ void copy(const float *X, const struct share *s, float4 *ring,
                            struct shared *shared, long long M)
{
    struct place place = {0, 1}, old = {0, 0};
    long long issued = 0;
    unsigned long long policy;
    const float4 *row = (const float4 *)X;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    for (long long m = 0; m < M; m++, row += s->quads)
        for (int k = 0; k < s->slices; k++) {
            const unsigned full = address(&shared->full[place.slot]),
                           bytes = 16 * any_slice(s, k).length;
            if (issued++ >= WINDOW) {
                wait_for(&shared->full[old.slot], old.parity);
                advance(&old, SLOTS);
            }
            wait_for(&shared->empty[place.slot], place.parity);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                         "r"(bytes)
                         : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                             address(ring + place.slot * SLICE)),
                         "l"(row + any_slice(s, k).begin), "r"(bytes), "r"(full), "l"(policy)
                         : "memory");
            advance(&place, SLOTS);
        }
}

/* The second warpgroup. */
static __device__ void take(unsigned long long *parts, const struct share *s, const float4 *ring,
                            struct shared *shared, long long M, int thread)
{
    struct place place = {0, 0};
    int row = 0;
    for (long long m = 0; m < M; m++) {
        struct moments all = {0, 0, 0};
        for (int k = 0; k < s->slices; k++) {
            wait_for(&shared->full[place.slot], place.parity);
#pragma unroll 1
            for (int i = thread; i < SLICE; i += TAKEN * TAKERS)
                all = gather(ring + place.slot * SLICE + i, i, any_slice(s, k).length, all);
            give_back(&shared->empty[place.slot], __float_as_uint(all.squares), s->never);
            advance(&place, SLOTS);
        }
        all = joined(all, thread, TAKERS, shared, m);
        if (thread == 0) {
            tell(all, parts + m * BLOCKS);
            arrive(&shared->told[row]);
        }
        row = row + 1 == KNOWN ? 0 : row + 1;
    }
}

static __device__ __forceinline__ void ask(const float *from, const struct share *s)
{
    for (int k = AWAY; k < s->slices; k++) {
        const struct slice slice = any_slice(s, k);
        asm volatile(
            "cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"((const float4 *)from + slice.begin),
            "r"(16 * slice.length)
            : "memory");
    }
}

/* One warp of the first warpgroup. A place in `row` is free again: for KNOWN rows more to have come
 * the slots of all of its own and EARLY slices after those were given back. */
static __device__ void agree(const float *gamma, const float *beta, const unsigned long long *parts,
                             const struct share *s, struct shared *shared, long long M)
{
    struct place row = {0, 0};
    const struct row r = row_of(s->N);
    struct meeting meeting;
    if (threadIdx.x % 32 == 0)
        meeting = come();
    for (long long m = 0; m < M; m++) {
        wait_for(&shared->told[row.slot], row.parity);
        if (m == 0 && threadIdx.x % 32 == 0) {
            ask(gamma, s);
            ask(beta, s);
            await_all(meeting);
        }
        __syncwarp();
        const float2 found = hear(parts, r);
        parts += BLOCKS;
        if (threadIdx.x % 32 == 0) {
            shared->row[row.slot] = found;
            arrive(&shared->known[row.slot]);
        }
        advance(&row, KNOWN);
    }
}

struct writer {
    const struct share *s;
    const float4 *ring;
    struct shared *shared;
    struct place now;
    int thread;
};

/* The next slice, out of the ring. */
static __device__ __forceinline__ void fetch(struct writer *w, float4 *v)
{
    const float4 *slice = w->ring + w->now.slot * SLICE + w->thread;
    unsigned read = 0;
    wait_for(&w->shared->full[w->now.slot], w->now.parity);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        v[e] = slice[e * THREADS];
        read |= __float_as_uint(v[e].x);
    }
    give_back(&w->shared->empty[w->now.slot], read, w->s->never);
    advance(&w->now, SLOTS);
}

/* Slice k of a row. */
static __device__ __forceinline__ void put(struct writer *w, struct slice slice, float2 row,
                                           const float4 *v, const float4 *g, const float4 *b,
                                           float4 *y)
{
    y += slice.begin + w->thread;
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (has(slice, w->thread, e))
            __stcs(y + e * THREADS, normalized(v[e], row, g[e], b[e]));
}

/* EACH vectors of gamma or beta, which L2 is asked to keep. */
static __device__ __forceinline__ void load(const float *from, struct slice slice, int thread,
                                            float4 *v)
{
    const float4 *at = (const float4 *)from + slice.begin + thread;
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (has(slice, thread, e))
            asm volatile(
                "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                : "=f"(v[e].x), "=f"(v[e].y), "=f"(v[e].z), "=f"(v[e].w)
                : "l"(at + e * THREADS), "l"(policy));
}

static __device__ __forceinline__ void write(const float *gamma, const float *beta, float *Y,
                                             long long M, const struct share *s, const float4 *ring,
                                             struct shared *shared, int thread)
{
    struct writer w = {s, ring, shared, {0, 0}, thread};
    struct place place = {0, 0};
    float4 g[HELD + 1], b[HELD + 1], early[EARLY * EACH + 1], v[EACH];
    float4 next_g[EACH], next_b[EACH];
#pragma unroll
    for (int k = 0; k < AWAY; k++) {
        load(gamma, whole_slice(s, k), thread, g + k * EACH);
        load(beta, whole_slice(s, k), thread, b + k * EACH);
    }
    load(gamma, any_slice(s, AWAY), thread, next_g);
    load(beta, any_slice(s, AWAY), thread, next_b);
    for (long long m = 0; m < M; m++) {
#pragma unroll
        for (int k = 0; k < EARLY; k++)
            fetch(&w, early + k * EACH);
        wait_for(&shared->known[place.slot], place.parity);
        const float2 row = shared->row[place.slot];
        float4 *y = (float4 *)Y + m * s->quads;
        advance(&place, KNOWN);
#pragma unroll
        for (int k = 0; k < AWAY; k++) {
            if (k >= EARLY)
                fetch(&w, v);
            put(&w, whole_slice(s, k), row, k < EARLY ? early + k * EACH : v, g + k * EACH,
                b + k * EACH, y);
        }
        for (int k = AWAY; k < s->slices; k++) {
            fetch(&w, v);
            put(&w, any_slice(s, k), row, v, next_g, next_b, y);
            const struct slice next = any_slice(s, k + 1 < s->slices ? k + 1 : AWAY);
            load(gamma, next, thread, next_g);
            load(beta, next, thread, next_b);
        }
    }
}

/* --- all other rows --- */

static __device__ __forceinline__ long long from_of(struct row r, int k)
{
    return k < r.whole ? (k * (long long)blocks() + rank()) * 4 * SLICE
                       : r.whole * (long long)blocks() * 4 * SLICE + (long long)rank() * r.tail;
}

static __device__ void twice(const float *X, const float *gamma, const float *beta, float *Y,
                             unsigned long long *parts, long long M, long long N,
                             struct shared *shared, int thread)
{
    const struct row r = row_of(N);
    if (thread == 0)
        await_all(come());
    for (long long m = 0; m < M; m++) {
        const float *x = X + m * N;
        struct moments all = {0, 0, 0};
        for (int k = 0; k <= r.whole; k++) {
            const long long from = from_of(r, k),
                            end = min(N, from + (k < r.whole ? 4 * SLICE : r.tail));
            float v[4 * EACH];
            struct moments run = {0, 0, 0};
#pragma unroll
            for (int i = 0; i < 4 * EACH; i++) {
                const long long n = from + thread + i * THREADS;
                v[i] = n < end ? x[n] : 0.0f;
                run.mean += v[i];
                run.count += n < end ? 1.0f : 0.0f;
            }
            run.mean = run.count > 0 ? __fdividef(run.mean, run.count) : 0.0f;
#pragma unroll
            for (int i = 0; i < 4 * EACH; i++)
                if (from + thread + i * THREADS < end)
                    run.squares += (v[i] - run.mean) * (v[i] - run.mean);
            all = join(all, run);
        }
        all = joined(all, thread, THREADS, shared, m);
        if (thread == 0)
            tell(all, parts + m * BLOCKS);
        __syncwarp();
        if (thread < 32) { /* the lanes' sums differ in their last bits: one of them tells */
            const float2 found = hear(parts + m * BLOCKS, r);
            if (thread == 0)
                shared->row[0] = found;
        }
        asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
        const float2 row = shared->row[0];
        for (int k = 0; k <= r.whole; k++)
            for (long long from = from_of(r, k), n = from + thread;
                 n < min(N, from + (k < r.whole ? 4 * SLICE : r.tail)); n += THREADS)
                Y[m * N + n] = fmaf((x[n] - row.x) * row.y, gamma[n], beta[n]);
    }
}

extern "C" __global__ void __launch_bounds__(512, 1)
    layernorm(const float *__restrict__ X, const float *__restrict__ gamma,
              const float *__restrict__ beta, float *__restrict__ Y,
              unsigned long long *__restrict__ parts, long long M, long long N)
{
    extern __shared__ __align__(128) float4 ring[];
    struct shared *shared = (struct shared *)(ring + SLOTS * SLICE);
    const struct row r = row_of(N);
    const long long own = count_of(r, rank());
    const bool fits = N % 4 == 0 && r.whole >= AWAY && r.whole < SLOTS + EARLY;
    for (long long m = threadIdx.x; m < M; m += blockDim.x)
        parts[m * BLOCKS + rank()] = ~0ull;
    if (own == 0) {
        if (threadIdx.x == 0)
            come();
        return;
    }
    const int tail = (int)(own / 4) - r.whole * SLICE;
    const struct share s = {N,
                            (int)(N / 4),
                            rank() * SLICE,
                            blocks() * SLICE,
                            r.whole,
                            r.whole * blocks() * SLICE + rank() * (r.tail / 4),
                            tail,
                            r.whole + (tail > 0),
                            (unsigned)((unsigned long long)N >> 62)};
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) {
            barrier_init(&shared->full[i], 1);
            barrier_init(&shared->empty[i], (THREADS + TAKERS) / 32);
        }
        for (int i = 0; i < KNOWN; i++)
            barrier_init(&shared->known[i], 1), barrier_init(&shared->told[i], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x / 128 == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 48;");
        if (fits && threadIdx.x == 0)
            copy(X, &s, ring, shared, M);
        else if (fits && threadIdx.x / 32 == 1)
            agree(gamma, beta, parts, &s, shared, M);
    } else if (threadIdx.x / 128 == 1) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 48;");
        if (fits)
            take(parts, &s, ring, shared, M, threadIdx.x - 128);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 208;");
        if (fits)
            write(gamma, beta, Y, M, &s, ring, shared, threadIdx.x - 256);
        else
            twice(X, gamma, beta, Y, parts, M, N, shared, threadIdx.x - 256);
    }
}
