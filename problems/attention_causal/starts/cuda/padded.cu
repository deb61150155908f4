/*---
workspace:
  wide_q: {shape: [H, L, (D + 7) / 8 * 8], dtype: float16}
  wide_k: {shape: [H, L, (D + 7) / 8 * 8], dtype: float16}
  wide_v: {shape: [H, L, (D + 7) / 8 * 8], dtype: float16}
launch:
  - entry: widen
    grid: ceil_div(H * L * ((D + 7) / 8), 256), 3
    block: 256
    args: [Q, K, V, wide_q, wide_k, wide_v, H, L, D]
  - entry: attention
    grid: min(ceil_div(L, 64 * GROUPS) * H, sm_count)
    block: 128 * GROUPS + 128
    shared: (128 * GROUPS + 4 * STAGES * KEYS) * round_up(HEAD, 64) + 2048
    args: [tile_q, tile_k, tile_v, Q, K, V, O, H, L, D]
tma:
  tile_q: {tensor: wide_q, box: [1, 64, 64], swizzle: 128B, l2: 256B}
  tile_k: {tensor: wide_k, box: [1, KEYS, 64], swizzle: 128B, l2: 256B}
  tile_v: {tensor: wide_v, box: [1, KEYS, 64], swizzle: 128B, l2: 256B}
tune:
  HEAD: [48, 64, 128, 32, 80, 96, 112, 144, 160, 176, 192, 208, 224, 240, 256]
  GROUPS: [2, 3]
  KEYS: [128, 176, 192, 208, 224, 160, 144, 112, 96, 80, 64]
  STAGES: [2, 3]
  HALVES: [2, 1]
  where: >
    D % 8 != 0 && HEAD >= min(D, 256) && (HEAD == 32 || HEAD < D + 16)
    && 3*KEYS/4 + HEAD/2 <= 204 - 72 * (GROUPS == 3)
    && (128 * GROUPS + 4 * STAGES * KEYS) * round_up(HEAD, 64) + 2048 <= shared_bytes_optin
---*/
/* Causal flash attention for heads that are no multiple of 8, whose rows are not aligned to 16
 * bytes: the copy engine does not take them. A first launch copies all to rows of round_up(D, 8),
 * zeros behind. Then it goes as in wgmma.cu, which says how, but for the results: a warp's are
 * contiguous rows of D numbers. It writes them where the queries were, as far from 16 bytes as they
 * are in memory, and copies from there. Heads wider than HEAD go by plain loops. */
#include <cuda_fp16.h>

#define ROWS        (64 * GROUPS)
#define PANELS      ((HEAD + 63) / 64)
#define QUERY_BYTES (128 * ROWS * PANELS)
#define TILE_BYTES  (128 * KEYS * PANELS)
#define LEAST       -3.402823466e38f
#define MOST_SUM    32768.0f
#define HALF        (HALVES == 2 ? KEYS / 32 * 16 : KEYS) /* of KEYS */

struct alignas(64) map {
    char bytes[128];
};

/* What a thread has of n columns of a product, n / 2 numbers, as an instruction's first operands. */
#define LIST_32  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define LIST_48  LIST_32 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define LIST_64  LIST_48 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define LIST_80  LIST_64 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define LIST_96  LIST_80 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define LIST_112 LIST_96 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define LIST_128 LIST_112 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define LIST_144 LIST_128 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define LIST_160 LIST_144 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define LIST_176 LIST_160 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define LIST_192 LIST_176 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define LIST_208 LIST_192 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define LIST_224 LIST_208 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define LIST_240 LIST_224 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define LIST_256 LIST_240 ",%120,%121,%122,%123,%124,%125,%126,%127"
#define FLOATS_8(d, i)                                                                             \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define FLOATS_32(d)  FLOATS_8(d, 0), FLOATS_8(d, 8)
#define FLOATS_48(d)  FLOATS_32(d), FLOATS_8(d, 16)
#define FLOATS_64(d)  FLOATS_48(d), FLOATS_8(d, 24)
#define FLOATS_80(d)  FLOATS_64(d), FLOATS_8(d, 32)
#define FLOATS_96(d)  FLOATS_80(d), FLOATS_8(d, 40)
#define FLOATS_112(d) FLOATS_96(d), FLOATS_8(d, 48)
#define FLOATS_128(d) FLOATS_112(d), FLOATS_8(d, 56)
#define FLOATS_144(d) FLOATS_128(d), FLOATS_8(d, 64)
#define FLOATS_160(d) FLOATS_144(d), FLOATS_8(d, 72)
#define FLOATS_176(d) FLOATS_160(d), FLOATS_8(d, 80)
#define FLOATS_192(d) FLOATS_176(d), FLOATS_8(d, 88)
#define FLOATS_208(d) FLOATS_192(d), FLOATS_8(d, 96)
#define FLOATS_224(d) FLOATS_208(d), FLOATS_8(d, 104)
#define FLOATS_240(d) FLOATS_224(d), FLOATS_8(d, 112)
#define FLOATS_256(d) FLOATS_240(d), FLOATS_8(d, 120)
/* n, these, and the five operands after them. */
#define N_32  32, LIST_32, "%16", "%17", "%18", "%19", "%20"
#define N_48  48, LIST_48, "%24", "%25", "%26", "%27", "%28"
#define N_64  64, LIST_64, "%32", "%33", "%34", "%35", "%36"
#define N_80  80, LIST_80, "%40", "%41", "%42", "%43", "%44"
#define N_96  96, LIST_96, "%48", "%49", "%50", "%51", "%52"
#define N_112 112, LIST_112, "%56", "%57", "%58", "%59", "%60"
#define N_128 128, LIST_128, "%64", "%65", "%66", "%67", "%68"
#define N_144 144, LIST_144, "%72", "%73", "%74", "%75", "%76"
#define N_160 160, LIST_160, "%80", "%81", "%82", "%83", "%84"
#define N_176 176, LIST_176, "%88", "%89", "%90", "%91", "%92"
#define N_192 192, LIST_192, "%96", "%97", "%98", "%99", "%100"
#define N_208 208, LIST_208, "%104", "%105", "%106", "%107", "%108"
#define N_224 224, LIST_224, "%112", "%113", "%114", "%115", "%116"
#define N_240 240, LIST_240, "%120", "%121", "%122", "%123", "%124"
#define N_256 256, LIST_256, "%128", "%129", "%130", "%131", "%132"
#define JOIN_(a, b)                     a##b
#define JOIN(a, b)                      JOIN_(a, b)
#define EXPAND(macro, ...)              macro(__VA_ARGS__)
#define PRODUCT(n, list) "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.f16.f16 {" list "}, "
#define SHARED_(n, list, a, b, c, d, e) PRODUCT(n, list) a ", " b ", "
#define TAKEN_(n, list, a, b, c, d, e)                                                             \
    PRODUCT(n, list) "{" a ", " b ", " c ", " d "}, " e ", 1, 1, 1, 1;"
#define SCORES(d)    JOIN(FLOATS_, KEYS)(d)
#define SCORES_TEXT  EXPAND(SHARED_, JOIN(N_, KEYS))
#define RESULTS(d)   JOIN(FLOATS_, HEAD)(d)
#define RESULTS_TEXT EXPAND(TAKEN_, JOIN(N_, HEAD))

static __device__ __forceinline__ void barrier_init(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

static __device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* The calling warp is done with what the barrier guards. */
static __device__ __forceinline__ void barrier_release(unsigned barrier)
{
    if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* All panels of 64 columns of `rows` rows of a head. */
static __device__ __forceinline__ void fetch(unsigned to, const struct map *map, int rows, int row,
                                             int head, unsigned barrier)
{
    for (int p = 0; p < PANELS; p++)
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
            "[%1, {%2, %3, %4}], [%5];" ::"r"(to + 128 * rows * p),
            "l"(map), "r"(64 * p), "r"(row), "r"(head), "r"(barrier)
            : "memory");
}

/* 128-byte swizzle, groups of eight rows 1024 bytes apart; `lead` bytes from panel to panel. */
static __device__ __forceinline__ unsigned long long describe(unsigned at, unsigned lead)
{
    return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(lead >> 4) << 16 |
           64ull << 32 | 1ull << 62;
}

/* Asks for the scores of 64 queries with a tile of keys. */
static __device__ __forceinline__ void ask_scores(float (&s)[KEYS / 2], unsigned queries,
                                                  unsigned keys)
{
    const unsigned long long q = describe(queries, 16), k = describe(keys, 16);
#pragma unroll
    for (int d = 0; d < HEAD / 16; d++) {
        const unsigned long long a = q + (d / 4 * 8192 + d % 4 * 32) / 16,
                                 b = k + (d / 4 * 128 * KEYS + d % 4 * 32) / 16;
        if (d == 0)
            asm volatile(SCORES_TEXT "0, 1, 1, 0, 0;" : SCORES(s) : "l"(a), "l"(b));
        else
            asm volatile(SCORES_TEXT "1, 1, 1, 0, 0;" : SCORES(s) : "l"(a), "l"(b));
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Asks for the weights' product with keys `from` to `to` of a tile of values, whose columns are
 * contiguous. */
static __device__ __forceinline__ void
ask_results(float (&o)[HEAD / 2], const unsigned (&w)[KEYS / 4], unsigned values, int from, int to)
{
    const unsigned long long v = describe(values, 128 * KEYS);
#pragma unroll
    for (int k = from / 16; k < to / 16; k++)
        asm volatile(RESULTS_TEXT
                     : RESULTS(o)
                     : "r"(w[4 * k]), "r"(w[4 * k + 1]), "r"(w[4 * k + 2]), "r"(w[4 * k + 3]),
                       "l"(v + 128 * k));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* For all that was asked for but the last `but`, which write these numbers. */
#define WAIT(but, ...)                                                                             \
    asm volatile("wgmma.wait_group.sync.aligned " #but ";" : __VA_ARGS__::"memory")

/* The assembler would move the next wait in front of the powers that are there to hide it. It does
 * not move it across a branch that needs their sums, which are never negative. */
static __device__ __forceinline__ void finish(const float (&sum)[2])
{
    if (sum[0] + sum[1] < 0)
        asm volatile("nanosleep.u32 1;" ::: "memory");
}

static __device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ unsigned pair(float low, float high)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

/* Of a thread's two rows of 64: element 4 j + 2 h + e is of row h, column 8 j + 2 (lane % 4) + e.
 */
struct rows {
    float most[2], sum[2];
};

/* A query of the tile that is the warp's row `first` sees keys up to its own, counted from the
 * tile's first key. */
static __device__ __forceinline__ void mask(float (&s)[KEYS / 2], int first)
{
    const int seen = first + threadIdx.x % 32 / 4 - threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++)
        s[i] = i / 4 * 8 + i % 2 <= seen + i / 2 % 2 * 8 ? s[i] : LEAST;
}

static __device__ __forceinline__ void largest(const float (&s)[KEYS / 2], float (&top)[2])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float part[4];
#pragma unroll
        for (int c = 0; c < 4; c++)
            part[c] = s[c / 2 * 4 + 2 * h + c % 2];
#pragma unroll
        for (int j = 2; j < KEYS / 8; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                part[j % 2 * 2 + e] = fmaxf(part[j % 2 * 2 + e], s[4 * j + 2 * h + e]);
        top[h] = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
        top[h] = fmaxf(top[h], __shfl_xor_sync(~0u, top[h], 1));
        top[h] = fmaxf(top[h], __shfl_xor_sync(~0u, top[h], 2));
    }
}

/* Scores of keys `from` to `to` become weights relative to `most`; says their sums. */
static __device__ __forceinline__ void weigh(const float (&s)[KEYS / 2], unsigned (&w)[KEYS / 4],
                                             int from, int to, const float (&most)[2], float scale,
                                             float (&sum)[2])
{
    const float less[2] = {most[0] * scale, most[1] * scale};
    float part[4] = {};
#pragma unroll
    for (int i = from / 2; i < to / 2; i += 2) {
        float p[2];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            p[e] = power(fmaf(s[i + e], scale, -less[i / 2 % 2]));
            part[i % 4 + e] += p[e];
        }
        w[i / 2] = pair(p[0], p[1]);
    }
    sum[0] = part[0] + part[1];
    sum[1] = part[2] + part[3];
}

/* Weights become relative to the tile's largest scores, where these are larger. */
static __device__ __forceinline__ void rise(const float (&s)[KEYS / 2], float (&o)[HEAD / 2],
                                            struct rows *rows, float scale)
{
    float top[2], fade[2];
    largest(s, top);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        top[h] = fmaxf(top[h], rows->most[h]);
        fade[h] = power((rows->most[h] - top[h]) * scale);
        rows->most[h] = top[h];
        rows->sum[h] *= fade[h];
    }
#pragma unroll
    for (int i = 0; i < HEAD / 2; i++)
        o[i] *= fade[i / 2 % 2];
}

/* `to` is the warp's first row, of which `rows` exist, `by` where it has room for 16. */
static __device__ __forceinline__ void store(__half *to, unsigned by, const float (&o)[HEAD / 2],
                                             const struct rows *sums, long long rows, int D)
{
    const int lane = threadIdx.x % 32, ahead = (int)((unsigned long long)to % 16),
              end = ahead + (int)max(0ll, min(16ll, rows)) * D * 2;
    const bool pairs = D % 2 == 0 && ahead % 4 == 0;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float over = 1.0f / sums->sum[h];
        const unsigned row = by + ahead + ((lane / 4 + 8 * h) * D + lane % 4 * 2) * 2;
#pragma unroll
        for (int j = 0; j < HEAD / 8; j++) {
            const unsigned both = pair(o[4 * j + 2 * h] * over, o[4 * j + 2 * h + 1] * over);
            const int left = D - 8 * j - lane % 4 * 2;
            if (pairs && left > 0)
                asm volatile("st.shared.u32 [%0], %1;" ::"r"(row + 16 * j), "r"(both) : "memory");
            if (!pairs && left > 0)
                asm volatile("st.shared.u16 [%0], %1;" ::"r"(row + 16 * j), "h"((short)both)
                             : "memory");
            if (!pairs && left > 1)
                asm volatile("st.shared.u16 [%0], %1;" ::"r"(row + 16 * j + 2),
                             "h"((short)(both >> 16))
                             : "memory");
        }
    }
    __syncwarp();
    for (int at = 16 * lane; at < end; at += 512) {
        uint4 part;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(part.x), "=r"(part.y), "=r"(part.z), "=r"(part.w)
                     : "r"(by + at)
                     : "memory");
        char *piece = (char *)to - ahead + at;
        if (at >= ahead && at + 16 <= end) {
            *(uint4 *)piece = part;
            continue;
        }
        const unsigned words[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (at + 2 * i >= ahead && at + 2 * i < end)
                *(unsigned short *)(piece + 2 * i) = (unsigned short)(words[i / 2] >> i % 2 * 16);
    }
}

/* Where things lie in shared memory; a stage is keys and values. */
struct place {
    unsigned queries, stages, barriers;
};

#define QUERIES_FULL(p)   ((p).barriers)
#define QUERIES_EMPTY(p)  ((p).barriers + 8)
#define KEYS_FULL(p, s)   ((p).barriers + 16 + 32 * (s))
#define VALUES_FULL(p, s) ((p).barriers + 32 + 32 * (s))
#define EMPTY             8 /* bytes behind a stage's full barrier */

struct ring {
    int slot;
    unsigned parity;
};

static __device__ __forceinline__ void advance(struct ring *ring)
{
    if (++ring->slot == STAGES) {
        ring->slot = 0;
        ring->parity ^= 1;
    }
}

static __device__ __forceinline__ void copy_tile(unsigned full, unsigned to, const struct map *map,
                                                 int row, int head, struct ring *ring)
{
    barrier_wait(full + EMPTY, ring->parity);
    barrier_expect(full, TILE_BYTES);
    fetch(to, map, KEYS, row, head, full);
    advance(ring);
}

/* A block's tile of queries in a round: those with most keys in the first one. */
struct work {
    int head, block, steps; /* tiles of keys */
};

static __device__ __forceinline__ bool work_at(struct work *work, int round, int H, int blocks,
                                               long long L)
{
    const int number = round * gridDim.x + (round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    work->head = number % H;
    work->block = blocks - 1 - number / H;
    work->steps = (int)((min(L, (long long)(work->block + 1) * ROWS) + KEYS - 1) / KEYS);
    return number < blocks * H;
}

static __device__ __forceinline__ void copy_tiles(const struct map *map_q, const struct map *map_k,
                                                  const struct map *map_v, struct place p, int H,
                                                  int blocks, long long L)
{
    struct ring keys = {0, 1}, values = {0, 1}; /* nobody waits for what was never filled */
    struct work work;
    for (int round = 0; work_at(&work, round, H, blocks, L); round++)
        for (int step = 0; step <= work.steps; step++) {
            if (step < work.steps)
                copy_tile(KEYS_FULL(p, keys.slot), p.stages + 2 * keys.slot * TILE_BYTES, map_k,
                          step * KEYS, work.head, &keys);
            if (step > 0)
                copy_tile(VALUES_FULL(p, values.slot),
                          p.stages + (2 * values.slot + 1) * TILE_BYTES, map_v, (step - 1) * KEYS,
                          work.head, &values);
            if (step == (round > 0)) { /* as late as the last results are stored */
                barrier_wait(QUERIES_EMPTY(p), round % 2 ^ 1);
                barrier_expect(QUERIES_FULL(p), QUERY_BYTES);
                for (int group = 0; group < GROUPS; group++)
                    fetch(p.queries + 8192 * PANELS * group, map_q, 64,
                          work.block * ROWS + 64 * group, work.head, QUERIES_FULL(p));
            }
        }
}

/* Three warpgroups ask in turns, the first one first. Two keep out of each other's way. */
static __device__ __forceinline__ void take_turn(int group)
{
    if (GROUPS == 3)
        asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
}

static __device__ __forceinline__ void give_turn(int group)
{
    if (GROUPS == 3)
        asm volatile("bar.arrive %0, 256;" ::"r"(1 + (group + 1) % GROUPS) : "memory");
}

static __device__ __forceinline__ void attend_tiles(__half *O, long long L, int D, float scale,
                                                    struct place p, int H, int blocks)
{
    struct work work;
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0) - 1, warp = threadIdx.x / 32 % 4;
    const unsigned queries = p.queries + 8192 * PANELS * group;
    struct ring keys = {0, 0}, values = {0, 0};
    float s[KEYS / 2], o[HEAD / 2];
    unsigned w[KEYS / 4];
    if (group == GROUPS - 1)
        give_turn(group);
    for (int round = 0; work_at(&work, round, H, blocks, L); round++) {
        const int steps = work.steps, first = work.block * ROWS + 64 * group + 16 * warp;
        struct rows rows = {};
        barrier_wait(QUERIES_FULL(p), round % 2);
        barrier_wait(KEYS_FULL(p, keys.slot), keys.parity);
        fence();
        ask_scores(s, queries, p.stages + 2 * keys.slot * TILE_BYTES);
        WAIT(0, SCORES(s));
        barrier_release(KEYS_FULL(p, keys.slot) + EMPTY);
        advance(&keys);
        if (first < KEYS)
            mask(s, first);
        largest(s, rows.most);
        weigh(s, w, 0, KEYS, rows.most, scale, rows.sum);
#pragma unroll
        for (int i = 0; i < HEAD / 2; i++)
            o[i] = 0;
        for (int step = 1; step < steps; step++) {
            float sum[2], more[2] = {};
            const unsigned tile = p.stages + (2 * values.slot + 1) * TILE_BYTES;
            barrier_wait(KEYS_FULL(p, keys.slot), keys.parity);
            take_turn(group);
            fence();
            ask_scores(s, queries, p.stages + 2 * keys.slot * TILE_BYTES);
            barrier_wait(VALUES_FULL(p, values.slot), values.parity);
            ask_results(o, w, tile, 0, HALF);
            if (HALVES == 2)
                ask_results(o, w, tile, HALF, KEYS);
            give_turn(group);
            if (HALVES == 2)
                WAIT(1, SCORES(s));
            else
                WAIT(0, SCORES(s), RESULTS(o));
            barrier_release(KEYS_FULL(p, keys.slot) + EMPTY);
            advance(&keys);
            if (first < (step + 1) * KEYS)
                mask(s, first - step * KEYS);
            if (HALVES == 2) {
                weigh(s, w, 0, HALF, rows.most, scale, more);
                finish(more);
                WAIT(0, SCORES(s), RESULTS(o));
            }
            barrier_release(VALUES_FULL(p, values.slot) + EMPTY);
            advance(&values);
            weigh(s, w, HALVES == 2 ? HALF : 0, KEYS, rows.most, scale, sum);
            sum[0] += more[0];
            sum[1] += more[1];
            if (__any_sync(~0u, !(sum[0] < MOST_SUM && sum[1] < MOST_SUM))) {
                rise(s, o, &rows, scale);
                weigh(s, w, 0, KEYS, rows.most, scale, sum);
            }
            rows.sum[0] += sum[0];
            rows.sum[1] += sum[1];
        }
        barrier_wait(VALUES_FULL(p, values.slot), values.parity);
        fence();
        ask_results(o, w, p.stages + (2 * values.slot + 1) * TILE_BYTES, 0, KEYS);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            rows.sum[h] += __shfl_xor_sync(~0u, rows.sum[h], 1);
            rows.sum[h] += __shfl_xor_sync(~0u, rows.sum[h], 2);
        }
        WAIT(0, RESULTS(o));
        barrier_release(VALUES_FULL(p, values.slot) + EMPTY);
        advance(&values);
        asm volatile("bar.sync %0, 128;" ::"r"(8 + group) : "memory"); /* all have read queries */
        store(O + (work.head * L + first) * D, queries + 2048 * PANELS * warp, o,
              &rows, L - first, D);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        barrier_release(QUERIES_EMPTY(p));
    }
    if (group == 0)
        take_turn(group); /* the last one's, which nobody else would take */
}

/* A warp a query, key by key, 128 columns of the result in a pass. */
static __device__ void plain(const __half *Q, const __half *K, const __half *V, __half *O,
                             long long H, long long L, long long D, float scale)
{
    const int lane = threadIdx.x % 32;
    const long long warps = (long long)gridDim.x * (blockDim.x / 32);
    for (long long row = (long long)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; row < H * L;
         row += warps)
        for (long long d0 = lane; d0 < D + lane; d0 += 128) {
            float most = LEAST, sum = 0, o[4] = {};
            for (long long j = row / L * L; j <= row; j++) {
                float score = 0;
                for (long long d = lane; d < D; d += 32)
                    score = fmaf(__half2float(Q[row * D + d]), __half2float(K[j * D + d]), score);
                for (int x = 1; x < 32; x *= 2)
                    score += __shfl_xor_sync(~0u, score, x);
                const float top = fmaxf(most, score), fade = power((most - top) * scale),
                            weight = power((score - top) * scale);
                most = top;
                sum = fmaf(sum, fade, weight);
                for (int i = 0; i < 4; i++)
                    if (d0 + 32 * i < D)
                        o[i] = fmaf(weight, __half2float(V[j * D + d0 + 32 * i]), o[i] * fade);
            }
            for (int i = 0; i < 4; i++)
                if (d0 + 32 * i < D)
                    O[row * D + d0 + 32 * i] = __float2half_rn(o[i] / sum);
        }
}

/* Eight numbers of X from `at` on, of which `left` are the row's; zeros behind. */
static __device__ __forceinline__ uint4 eight(const __half *X, long long at, int left,
                                              long long count)
{
    const char *from = (const char *)(X + at);
    const unsigned ahead = (unsigned)((unsigned long long)from % 16);
    const uint4 *whole = (const uint4 *)(from - ahead);
    unsigned r[4] = {};
    if ((const char *)(whole + 2) <= (const char *)(X + count)) {
        const uint4 a = __ldg(whole), b = ahead == 0 ? a : __ldg(whole + 1);
        const bool two = ahead & 8, one = ahead & 4;
        const unsigned s[6] = {two ? a.z : a.x, two ? a.w : a.y, two ? b.x : a.z,
                               two ? b.y : a.w, two ? b.z : b.x, two ? b.w : b.y};
#pragma unroll
        for (int i = 0; i < 4; i++)
            r[i] = __funnelshift_r(one ? s[i + 1] : s[i], one ? s[i + 2] : s[i + 1], ahead % 4 * 8);
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < left)
                r[i / 2] |= (unsigned)__half_as_ushort(X[at + i]) << i % 2 * 16;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        r[i] = 2 * i + 1 < left ? r[i] : r[i] & 0xffff;
        r[i] = 2 * i < left ? r[i] : 0;
    }
    return make_uint4(r[0], r[1], r[2], r[3]);
}

extern "C" __global__ void __launch_bounds__(256)
    widen(const __half *Q, const __half *K, const __half *V, uint4 *wide_q, uint4 *wide_k,
          uint4 *wide_v, long long H, long long L, long long D)
{
    const __half *from = blockIdx.y == 0 ? Q : K;
    uint4 *to = blockIdx.y == 0 ? wide_q : wide_k;
    const unsigned pieces = (unsigned)((D + 7) / 8), i = blockIdx.x * 256 + threadIdx.x,
                   row = i / pieces, piece = i % pieces;
    if (blockIdx.y == 2) {
        from = V;
        to = wide_v;
    }
    if (row < H * L)
        to[i] = eight(from, row * D + 8 * piece, (int)(D - 8 * piece), H * L * D);
}

extern "C" __global__ void __launch_bounds__(128 * GROUPS + 128, 1)
    attention(const __grid_constant__ struct map tile_q, const __grid_constant__ struct map tile_k,
              const __grid_constant__ struct map tile_v, const __half *Q, const __half *K,
              const __half *V, __half *O, long long H, long long L, long long D)
{
    extern __shared__ char memory[];
    const float scale = 1.44269504f / sqrtf((float)D);
    if (D > HEAD) {
        plain(Q, K, V, O, H, L, D, scale);
        return;
    }
    const unsigned base = ((unsigned)__cvta_generic_to_shared(memory) + 1023) / 1024 * 1024;
    const struct place p = {base, base + QUERY_BYTES, base + QUERY_BYTES + 2 * STAGES * TILE_BYTES};
    const int blocks = (int)((L + ROWS - 1) / ROWS);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 1 + 2 * STAGES; i++) {
            barrier_init(p.barriers + 16 * i, 1);
            barrier_init(p.barriers + 16 * i + EMPTY, 4 * GROUPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x / 128 == 0) {
        if (GROUPS == 2)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        else
            asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (threadIdx.x == 0)
            copy_tiles(&tile_q, &tile_k, &tile_v, p, (int)H, blocks, L);
    } else {
        if (GROUPS == 2)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        else
            asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
        attend_tiles(O, L, (int)D, scale, p, (int)H, blocks);
    }
}
