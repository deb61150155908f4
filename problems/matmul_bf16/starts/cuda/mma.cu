/*---
launch:
  - entry: gemm
    grid: ceil_div(M, BM) * ceil_div(N, BN)
    block: 32 * BM * BN / (WM * WN)
    shared: 2 * STAGES * (BM * (BK + 8) + BK * (BN + 8))
    args: [A, B, C, M, N, K]
tune:
  BM: [128, 256, 64]
  BN: [256, 128, 64]
  BK: [32, 64]
  WM: [64, 32]
  WN: [64, 32]
  STAGES: [5, 4, 3, 2]
  BLOCKS: [1, 2, 3]
  GROUP: [8, 1, 4, 16]
  where: >
    BM*BN >= 2*WM*WN && BM*BN <= 16*WM*WN
    && 2*STAGES*(BM*(BK + 8) + BK*(BN + 8)) <= 227000
    && BLOCKS * 2*STAGES*(BM*(BK + 8) + BK*(BN + 8)) <= 227000
    && BLOCKS * 32*BM*BN/(WM*WN) * (WM*WN/32 + (WM + WN)/2 + 48) <= 65536
    && (compute_capability != 90 || STAGES == 5 && BLOCKS == 1 && GROUP == 8)
---*/
/* C = A B by mma.sync, which every processor since Ampere has. A warp makes WM x WN numbers of C in
 * tiles of 16 x 8. Tiles of A and B travel by cp.async, STAGES deep with one barrier a tile;
 * fragments are read by ldmatrix (B's turned on the way), those of the next 16 numbers of the sum
 * while these are multiplied, across the barrier too. Eight numbers of padding keep ldmatrix free
 * of conflicts. Matrices whose rows are not aligned to 16 bytes are copied number by number. Blocks
 * run in groups of GROUP rows of tiles, which keeps what they share in L2. */
#include <cuda_bf16.h>

#define THREADS (32 * BM * BN / (WM * WN))
#define PITCH_A (BK + 8)
#define PITCH_B (BN + 8)
#define STAGE   (BM * PITCH_A + BK * PITCH_B)
#define TM      (WM / 16)
#define TN      (WN / 8)
#define SLICES  (BK / 16)

static_assert(THREADS % (BK / 8) == 0 && THREADS % (BN / 8) == 0, "tiles are shared out in rows");
static_assert(SLICES % 2 == 0, "a tile begins with the first of two fragments");

struct place {
    const __nv_bfloat16 *a, *b; /* where the next tile to be copied begins */
    long long K, N;
    int rows, columns; /* of the block's tile, that exist */
};

struct fragments {
    unsigned a[TM][4], b[TN][2];
};

/* HEIGHT rows of WIDTH numbers, rows aligned to 16 bytes; `to` and `from` are the thread's own.
 * FULL: all of them exist. */
template <int HEIGHT, int WIDTH, bool FULL>
static __device__ __forceinline__ void copy(unsigned to, const __nv_bfloat16 *from, long long pitch,
                                            long long rows, long long columns)
{
    constexpr int STEP = THREADS / (WIDTH / 8);
    const int c = threadIdx.x % (WIDTH / 8) * 8, first = threadIdx.x / (WIDTH / 8);
#pragma unroll
    for (int i = 0; i < (HEIGHT + STEP - 1) / STEP; i++) {
        const int r = first + i * STEP;
        if (HEIGHT % STEP == 0 || r < HEIGHT)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                             to + 2 * i * STEP * (WIDTH + 8)),
                         "l"(from + i * STEP * pitch),
                         "r"(FULL || (r < rows && c < columns) ? 16 : 0)
                         : "memory");
    }
}

/* The same, number by number; `to` and `from` are the tile's. */
template <int HEIGHT, int WIDTH>
static __device__ __forceinline__ void carry(__nv_bfloat16 *to, const __nv_bfloat16 *from,
                                             long long pitch, long long rows, long long columns)
{
#pragma unroll 4
    for (int e = threadIdx.x; e < HEIGHT * WIDTH; e += THREADS) {
        const int r = e / WIDTH, c = e % WIDTH;
        to[r * (WIDTH + 8) + c] =
            r < rows && c < columns ? from[r * pitch + c] : __ushort_as_bfloat16(0);
    }
}

/* `a`, `b`: where the lane's row of the first fragment is. */
static __device__ __forceinline__ void load(struct fragments *f, unsigned a, unsigned b)
{
#pragma unroll
    for (int i = 0; i < TM; i++)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(f->a[i][0]), "=r"(f->a[i][1]), "=r"(f->a[i][2]), "=r"(f->a[i][3])
                     : "r"(a + 2 * 16 * i * PITCH_A)
                     : "memory");
#pragma unroll
    for (int j = 0; j < TN; j += 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(f->b[j][0]), "=r"(f->b[j][1]), "=r"(f->b[j + 1][0]),
                       "=r"(f->b[j + 1][1])
                     : "r"(b + 2 * 8 * j)
                     : "memory");
}

static __device__ __forceinline__ void multiply(const struct fragments *f, float (&acc)[TM][TN][4])
{
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                "{%8,%9}, {%0,%1,%2,%3};"
                : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                : "r"(f->a[i][0]), "r"(f->a[i][1]), "r"(f->a[i][2]), "r"(f->a[i][3]),
                  "r"(f->b[j][0]), "r"(f->b[j][1]));
}

template <bool WIDE>
static __device__ __forceinline__ void run(struct place p, __nv_bfloat16 *tiles, int wm, int wn,
                                           float (&acc)[TM][TN][4])
{
    const int lane = threadIdx.x % 32;
    const unsigned base = (unsigned)__cvta_generic_to_shared(tiles);
    const unsigned a = base + 2 * ((wm + lane % 16) * PITCH_A + lane / 16 * 8);
    const unsigned b = base + 2 * (BM * PITCH_A + lane % 16 * PITCH_B + wn + lane / 16 * 8);
    const int tid = threadIdx.x, row_a = tid / (BK / 8), row_b = tid / (BN / 8),
              column_a = tid % (BK / 8) * 8, column_b = tid % (BN / 8) * 8;
    const unsigned to_a = 2 * (row_a * PITCH_A + column_a),
                   to_b = 2 * (BM * PITCH_A + row_b * PITCH_B + column_b);
    if (WIDE) {
        p.a += row_a * p.K + column_a;
        p.b += row_b * p.N + column_b;
    }
    const long long steps = (p.K + BK - 1) / BK;
    const bool inside = WIDE && p.rows == BM && p.columns == BN;
    struct fragments f[2];
    int to = 0, from = 0;
    long long filled = 0;
    auto next = [&]() {
        if (filled < steps) {
            const long long depth = p.K - filled * BK;
            const unsigned at = base + 2 * to * STAGE;
            if (!WIDE) {
                carry<BM, BK>(tiles + to * STAGE, p.a, p.K, p.rows, depth);
                carry<BK, BN>(tiles + to * STAGE + BM * PITCH_A, p.b, p.N, depth, p.columns);
            } else if (inside && depth >= BK) {
                copy<BM, BK, true>(at + to_a, p.a, p.K, p.rows, depth);
                copy<BK, BN, true>(at + to_b, p.b, p.N, depth, p.columns);
            } else {
                copy<BM, BK, false>(at + to_a, p.a, p.K, p.rows, depth);
                copy<BK, BN, false>(at + to_b, p.b, p.N, depth, p.columns);
            }
            p.a += BK;
            p.b += BK * p.N;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        filled++;
        to = to + 1 == STAGES ? 0 : to + 1;
    };
    auto arrived = [&]() {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads(); /* the tile is here for all, and the one to be replaced was read by all */
    };
    for (int s = 0; s < STAGES - 1; s++)
        next();
    arrived();
    load(&f[0], a, b);
    for (long long step = 0; step < steps; step++) {
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            if (s + 1 == SLICES) {
                arrived();
                from = from + 1 == STAGES ? 0 : from + 1;
            }
            const int k = (s + 1) % SLICES * 16; /* after the last tile what is read is not used */
            load(&f[(s + 1) % 2], a + 2 * (from * STAGE + k), b + 2 * (from * STAGE + k * PITCH_B));
            if (s == 0)
                next();
            multiply(&f[s % 2], acc);
        }
    }
}

static __device__ __forceinline__ unsigned pair(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm(const __nv_bfloat16 *__restrict__ A, const __nv_bfloat16 *__restrict__ B,
         __nv_bfloat16 *__restrict__ C, long long M, long long N, long long K)
{
    extern __shared__ __align__(16) __nv_bfloat16 tiles[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned down = (unsigned)((M + BM - 1) / BM), across = (unsigned)((N + BN - 1) / BN);
    const unsigned first = blockIdx.x / (GROUP * across) * GROUP,
                   within = blockIdx.x % (GROUP * across);
    const unsigned height = min(down - first, (unsigned)GROUP);
    const long long m0 = (long long)(first + within % height) * BM,
                    n0 = (long long)(within / height) * BN;
    const bool wide = N % 8 == 0 && K % 8 == 0;

    struct place p;
    p.K = K;
    p.N = N;
    p.rows = (int)min(M - m0, (long long)BM);
    p.columns = (int)min(N - n0, (long long)BN);
    p.a = A + m0 * K;
    p.b = B + n0;
    const int wm = warp % (BM / WM) * WM, wn = warp / (BM / WM) * WN;
    float acc[TM][TN][4] = {};
    if (wide)
        run<true>(p, tiles, wm, wn, acc);
    else
        run<false>(p, tiles, wm, wn, acc);

#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int m = wm + 16 * i + 8 * h + lane / 4;
            __nv_bfloat16 *c = C + (m0 + m) * N + n0;
#pragma unroll
            for (int j = 0; j < TN; j++) {
                const int n = wn + 8 * j + lane % 4 * 2;
                if (wide && m < p.rows && n < p.columns)
                    *(unsigned *)(c + n) = pair(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
                else if (!wide && m < p.rows)
#pragma unroll
                    for (int l = 0; l < 2; l++)
                        if (n + l < p.columns)
                            c[n + l] = __float2bfloat16_rn(acc[i][j][2 * h + l]);
            }
        }
}
