/*---
launch:
  - entry: attention
    grid: ceil_div(L, 16 * TM * WARPS) * H * ceil_div(D, HEAD)
    block: 32 * WARPS
    shared: 4 * STAGES * KEYS * (HEAD + 8)
    args: [Q, K, V, O, H, L, D]
tune:
  WARPS: [4, 8, 2]
  TM: [2, 1]
  KEYS: [64, 32, 128]
  HEAD: [64, 128]
  STAGES: [2, 3, 4]
  BLOCKS: [2, 1, 3, 4]
  where: >
    TM * (KEYS/2 + 3*HEAD/4) + 64 <= 255
    && BLOCKS * 32*WARPS * (TM * (KEYS/2 + 3*HEAD/4) + 64) <= 65536
    && BLOCKS * 4*STAGES*KEYS*(HEAD + 8) <= 227000
---*/
/* Flash attention by mma.sync: scores never leave the registers. A warp takes 16 TM queries of a
 * head and passes over its keys in tiles of KEYS, with the running maximum and sum of the online
 * softmax beside the running result; the weights are rounded to float16 and are, as they lie in the
 * registers, the first factor of the product with V. Tiles of K and V travel by cp.async, STAGES
 * deep with one barrier a tile, queries straight from memory to registers. Scores are summed over D
 * in pieces of HEAD, results are made for HEAD columns; wider heads take more blocks, each of which
 * computes the scores anew. Rows that are not aligned to 16 bytes are copied number by number. */
#include <cuda_fp16.h>

#define THREADS (32 * WARPS)
#define BQ      (16 * TM * WARPS)
#define PITCH   (HEAD + 8)
#define TILE    (KEYS * PITCH)
#define TK      (KEYS / 8)
#define TD      (HEAD / 8)
#define LEAST   -3.402823466e38f

/* Where the block is: of a head's matrices of L x D. */
struct place {
    const __half *q, *k, *v; /* the first query, key, and value's column of the block */
    long long L, D;
    long long queries, columns; /* that exist from there on */
};

/* A tile of KEYS x HEAD from rows of D numbers, of which `rows` and `columns` exist. */
static __device__ __forceinline__ void fetch(__half *to, const __half *from, long long rows,
                                             long long columns, long long D)
{
    if (D % 8 == 0) {
#pragma unroll
        for (int i = 0; i < (KEYS * TD + THREADS - 1) / THREADS; i++) {
            const int e = threadIdx.x + i * THREADS, r = e / TD, c = e % TD * 8;
            if (KEYS * TD % THREADS == 0 || r < KEYS)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                                 (unsigned)__cvta_generic_to_shared(to + r * PITCH + c)),
                             "l"(from + r * D + c), "r"(r < rows && c < columns ? 16 : 0)
                             : "memory");
        }
    } else {
#pragma unroll 4
        for (int e = threadIdx.x; e < KEYS * HEAD; e += THREADS) {
            const int r = e / HEAD, c = e % HEAD;
            to[r * PITCH + c] = r < rows && c < columns ? from[r * D + c] : __ushort_as_half(0);
        }
    }
}

/* The warp's queries, columns from d on. */
static __device__ __forceinline__ void load_queries(const struct place *p, long long d,
                                                    unsigned (&q)[TM][HEAD / 16][4])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int k = 0; k < HEAD / 16; k++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const long long m = 16 * (warp * TM + i) + lane / 4 + e % 2 * 8,
                                c = d + 16 * k + lane % 4 * 2 + e / 2 * 8;
                const __half *from = p->q + m * p->D + c, none = __ushort_as_half(0);
                const bool in = m < p->queries;
                __half2 both = __halves2half2(in && c < p->D ? from[0] : none,
                                              in && c + 1 < p->D ? from[1] : none);
                q[i][k][e] = *(const unsigned *)&both;
            }
}

static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ void
add_scores(unsigned keys, const unsigned (&q)[TM][HEAD / 16][4], float (&s)[TM][TK][4])
{
    const int lane = threadIdx.x % 32;
    const unsigned row = keys + 2 * ((lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 8);
#pragma unroll
    for (int k = 0; k < HEAD / 16; k++)
#pragma unroll
        for (int j = 0; j < TK; j += 2) {
            unsigned b[4];
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                         : "r"(row + 2 * (8 * j * PITCH + 16 * k))
                         : "memory");
#pragma unroll
            for (int i = 0; i < TM; i++) {
                multiply(s[i][j], q[i][k], b[0], b[1]);
                multiply(s[i][j + 1], q[i][k], b[2], b[3]);
            }
        }
}

static __device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Scores to weights, whose scale is that of the largest score so far; what was summed before is
 * brought to the same scale. `keys` of the tile exist. */
static __device__ __forceinline__ void soften(float (&s)[TM][TK][4], float (&o)[TM][TD][4],
                                              float (&most)[TM][2], float (&sum)[TM][2],
                                              float scale, long long keys)
{
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = most[i][h];
            if (keys < KEYS) {
#pragma unroll
                for (int j = 0; j < TK; j++)
#pragma unroll
                    for (int e = 2 * h; e < 2 * h + 2; e++)
                        s[i][j][e] = 8 * j + 2 * t + e % 2 < keys ? s[i][j][e] : LEAST;
            }
#pragma unroll
            for (int j = 0; j < TK; j++)
                top = fmaxf(top, fmaxf(s[i][j][2 * h], s[i][j][2 * h + 1]));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
            const float fade = power((most[i][h] - top) * scale), less = top * scale;
            most[i][h] = top;
            sum[i][h] *= fade;
#pragma unroll
            for (int c = 0; c < TD; c++) {
                o[i][c][2 * h] *= fade;
                o[i][c][2 * h + 1] *= fade;
            }
#pragma unroll
            for (int j = 0; j < TK; j++)
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; e++) {
                    s[i][j][e] = power(fmaf(s[i][j][e], scale, -less));
                    sum[i][h] += s[i][j][e];
                }
        }
}

static __device__ __forceinline__ unsigned pair(float low, float high)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

static __device__ __forceinline__ void add_values(unsigned values, const float (&s)[TM][TK][4],
                                                  float (&o)[TM][TD][4])
{
    const int lane = threadIdx.x % 32;
    const unsigned row = values + 2 * (lane % 16 * PITCH + lane / 16 * 8);
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++) {
        unsigned a[TM][4];
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                a[i][e] = pair(s[i][2 * k + e / 2][e % 2 * 2], s[i][2 * k + e / 2][e % 2 * 2 + 1]);
#pragma unroll
        for (int c = 0; c < TD; c += 2) {
            unsigned b[4];
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                         : "r"(row + 2 * (16 * k * PITCH + 8 * c))
                         : "memory");
#pragma unroll
            for (int i = 0; i < TM; i++) {
                multiply(o[i][c], a[i], b[0], b[1]);
                multiply(o[i][c + 1], a[i], b[2], b[3]);
            }
        }
    }
}

static __device__ __forceinline__ void store(__half *to, const struct place *p,
                                             const float (&o)[TM][TD][4], float (&sum)[TM][2])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[i][h] += __shfl_xor_sync(~0u, sum[i][h], 1);
            sum[i][h] += __shfl_xor_sync(~0u, sum[i][h], 2);
            const float over = 1.0f / sum[i][h];
            const long long m = 16 * (warp * TM + i) + lane / 4 + 8 * h;
            __half *row = to + m * p->D;
#pragma unroll
            for (int c = 0; c < TD; c++) {
                const int n = 8 * c + lane % 4 * 2;
                const float x = o[i][c][2 * h] * over, y = o[i][c][2 * h + 1] * over;
                if (m < p->queries && n < p->columns && p->D % 2 == 0)
                    *(unsigned *)(row + n) = pair(x, y);
                else if (m < p->queries && n < p->columns) {
                    row[n] = __float2half_rn(x);
                    if (n + 1 < p->columns)
                        row[n + 1] = __float2half_rn(y);
                }
            }
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    attention(const __half *__restrict__ Q, const __half *__restrict__ K,
              const __half *__restrict__ V, __half *__restrict__ O, long long H, long long L,
              long long D)
{
    extern __shared__ __align__(16) __half tiles[];
    const unsigned slices = (unsigned)((D + HEAD - 1) / HEAD),
                   blocks = (unsigned)((L + BQ - 1) / BQ);
    const long long v0 = (long long)(blockIdx.x % slices) * HEAD;
    const long long head = blockIdx.x / slices / blocks * L * D,
                    q0 = (long long)(blockIdx.x / slices % blocks) * BQ;
    const struct place p = {Q + head + q0 * D, K + head, V + head + v0, L, D, L - q0, D - v0};
    const int pieces = (int)slices;
    const long long steps = (L + KEYS - 1) / KEYS * pieces;
    const float scale = 1.44269504f / sqrtf((float)D);
    const unsigned base = (unsigned)__cvta_generic_to_shared(tiles);
    unsigned q[TM][HEAD / 16][4];
    float s[TM][TK][4], o[TM][TD][4] = {}, most[TM][2], sum[TM][2] = {};
#pragma unroll
    for (int i = 0; i < TM; i++)
        most[i][0] = most[i][1] = LEAST;

    /* A step is a piece of a tile of keys; the values come with the last piece. */
    int to = 0, from = 0, piece_to = 0, piece = 0;
    long long key_to = 0, key = 0;
    auto next = [&]() {
        if (key_to < L) {
            __half *stage = tiles + 2 * to * TILE;
            const long long d = (long long)piece_to * HEAD;
            fetch(stage, p.k + key_to * D + d, L - key_to, D - d, D);
            if (++piece_to == pieces) {
                fetch(stage + TILE, p.v + key_to * D, L - key_to, p.columns, D);
                piece_to = 0;
                key_to += KEYS;
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        to = to + 1 == STAGES ? 0 : to + 1;
    };
    for (int i = 0; i < STAGES - 1; i++)
        next();
    load_queries(&p, 0, q);
    for (long long step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads(); /* the tiles are here for all, and those to be replaced were read by all */
        next();
        const unsigned stage = base + 4 * from * TILE;
        from = from + 1 == STAGES ? 0 : from + 1;
        if (pieces > 1)
            load_queries(&p, (long long)piece * HEAD, q);
        if (piece == 0)
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TK; j++)
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        s[i][j][e] = 0;
        add_scores(stage, q, s);
        if (++piece < pieces)
            continue;
        piece = 0;
        soften(s, o, most, sum, scale, L - key);
        add_values(stage + 2 * TILE, s, o);
        key += KEYS;
    }
    store(O + head + q0 * D + v0, &p, o, sum);
}
