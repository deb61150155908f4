/*---
launch:
  - entry: gemm
    grid: ceil_div(M, BM) * ceil_div(N, BN)
    block: 32 * BM * BN / (WM * WN)
    shared: 4 * STAGES * (BM * (BK + 8) + BK * (BN + 4))
    args: [A, B, C, M, N, K]
tune:
  BM: [64, 128, 256]
  BN: [64, 128]
  BK: [32, 16]
  WM: [64, 32]
  WN: [32, 64]
  STAGES: [2, 3, 4]
  BLOCKS: [2, 1, 3]
  GROUP: [8, 1, 4, 16]
  where: >
    BM % WM == 0 && BN % WN == 0 && WM * WN <= 2048
    && BM*BN >= 2*WM*WN && BM*BN <= 16*WM*WN
    && 4*STAGES*(BM*(BK + 8) + BK*(BN + 4)) <= 99000
    && BLOCKS * 4*STAGES*(BM*(BK + 8) + BK*(BN + 4)) <= 200000
    && BLOCKS * 32*BM*BN/(WM*WN) * (WM*WN/32 + 64) <= 65536
---*/
/* C = A B in float32 on tensor cores that know tf32: each number is split into two parts of 11
 * bits, and three of the four products of parts are made (the fourth is below float32's last bit).
 * The units truncate when they add, so that they sum over eight numbers only, the long sum is made
 * outside. A warp makes WM x WN numbers of C in tiles of 16 x 8. Tiles of A and B travel by
 * cp.async, STAGES deep; within eight numbers of the sum a thread takes two neighbours, the same of
 * A and of B, which makes A's fragment 8-byte reads. Both pitches keep the fragments' reads free of
 * conflicts. */
#define THREADS (32 * BM * BN / (WM * WN))
#define PITCH_A (BK + 8)
#define PITCH_B (BN + 4)
#define STAGE   (BM * PITCH_A + BK * PITCH_B)
#define TM      (WM / 16)
#define TN      (WN / 8)

static_assert(THREADS % (BK / 4) == 0 && BM % (THREADS / (BK / 4)) == 0,
              "the tile of A is shared out evenly");
static_assert(THREADS % (BN / 4) == 0, "the tile of B is shared out in rows");

template <int BYTES>
static __device__ __forceinline__ void copy(float *to, const float *from, bool in)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
                     "r"(in ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from),
                     "r"(in ? 4 : 0)
                     : "memory");
}

struct place {
    const float *a, *b; /* of the tile that is copied next: its first row and column */
    long long K, N;
    int rows, columns; /* of the block's tile, that exist */
};

/* WIDE: rows are aligned to 16 bytes. FULL: the tile lies inside A and B. */
template <bool WIDE, bool FULL>
static __device__ __forceinline__ void fill(const struct place *p, float *stage, long long depth)
{
    const int tid = threadIdx.x;
    float *sb = stage + BM * PITCH_A;
    if (WIDE) {
        const int ak = tid % (BK / 4) * 4, am = tid / (BK / 4), bn = tid % (BN / 4) * 4,
                  bk = tid / (BN / 4);
        constexpr int STEP_A = THREADS / (BK / 4), STEP_B = THREADS / (BN / 4);
#pragma unroll
        for (int i = 0; i < BM / STEP_A; i++) {
            const int m = am + i * STEP_A;
            copy<16>(stage + m * PITCH_A + ak, p->a + m * p->K + ak,
                     FULL || (m < p->rows && ak < depth));
        }
#pragma unroll
        for (int i = 0; i < (BK + STEP_B - 1) / STEP_B; i++) {
            const int k = bk + i * STEP_B;
            if (BK % STEP_B == 0 || k < BK)
                copy<16>(sb + k * PITCH_B + bn, p->b + k * p->N + bn,
                         FULL || (bn < p->columns && k < depth));
        }
    } else {
#pragma unroll 4
        for (int e = tid; e < BM * BK; e += THREADS)
            copy<4>(stage + e / BK * PITCH_A + e % BK, p->a + e / BK * p->K + e % BK,
                    e / BK < p->rows && e % BK < depth);
#pragma unroll 4
        for (int e = tid; e < BK * BN; e += THREADS)
            copy<4>(sb + e / BN * PITCH_B + e % BN, p->b + e / BN * p->N + e % BN,
                    e % BN < p->columns && e / BN < depth);
    }
}

/* What the unit ignores of `low` is below the last bit of x. */
static __device__ __forceinline__ void split(float x, unsigned *high, unsigned *low)
{
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(*high) : "f"(x));
    *low = __float_as_uint(x - __uint_as_float(*high));
}

/* d += a b for a tile of 16 x 8 by 8 numbers. */
static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4],
                                                const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* `wm`, `wn`: where the warp's part of the tile begins. */
static __device__ __forceinline__ void multiply_tile(const float *stage, int wm, int wn,
                                                     float (&acc)[TM][TN][4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float *sa = stage + (wm + g) * PITCH_A + 2 * t,
                *sb = stage + BM * PITCH_A + 2 * t * PITCH_B + wn + g;
#pragma unroll
    for (int k = 0; k < BK; k += 8) {
        unsigned bh[TN][2], bl[TN][2];
#pragma unroll
        for (int j = 0; j < TN; j++) {
            split(sb[k * PITCH_B + 8 * j], &bh[j][0], &bl[j][0]);
            split(sb[(k + 1) * PITCH_B + 8 * j], &bh[j][1], &bl[j][1]);
        }
#pragma unroll
        for (int i = 0; i < TM; i++) {
            unsigned ah[4], al[4];
            float d[TN][4] = {};
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const float2 v = *(const float2 *)(sa + (16 * i + 8 * h) * PITCH_A + k);
                split(v.x, &ah[h], &al[h]);
                split(v.y, &ah[h + 2], &al[h + 2]);
            }
#pragma unroll
            for (int j = 0; j < TN; j++)
                multiply(d[j], al, bh[j]);
#pragma unroll
            for (int j = 0; j < TN; j++)
                multiply(d[j], ah, bl[j]);
#pragma unroll
            for (int j = 0; j < TN; j++)
                multiply(d[j], ah, bh[j]);
#pragma unroll
            for (int j = 0; j < TN; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    acc[i][j][e] += d[j][e];
        }
    }
}

template <bool WIDE>
static __device__ __forceinline__ void run(struct place p, float *tiles, int wm, int wn,
                                           float (&acc)[TM][TN][4])
{
    const long long steps = (p.K + BK - 1) / BK;
    const bool inside = WIDE && p.rows == BM && p.columns == BN;
    int to = 0, from = 0;
    long long filled = 0;
    auto next = [&]() {
        if (filled < steps) {
            const long long depth = p.K - filled * BK;
            if (inside && depth >= BK)
                fill<WIDE, true>(&p, tiles + to * STAGE, depth);
            else
                fill<WIDE, false>(&p, tiles + to * STAGE, depth);
            p.a += BK;
            p.b += BK * p.N;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        filled++;
        to = to + 1 == STAGES ? 0 : to + 1;
    };
    for (int s = 0; s < STAGES - 1; s++)
        next();
    for (long long step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads(); /* the tile is here for all, and the one to be replaced was read by all */
        next();
        multiply_tile(tiles + from * STAGE, wm, wn, acc);
        from = from + 1 == STAGES ? 0 : from + 1;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C,
         long long M, long long N, long long K)
{
    extern __shared__ __align__(16) float tiles[];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const unsigned down = (unsigned)((M + BM - 1) / BM), across = (unsigned)((N + BN - 1) / BN);
    const unsigned first = blockIdx.x / (GROUP * across) * GROUP,
                   within = blockIdx.x % (GROUP * across);
    const unsigned height = min(down - first, (unsigned)GROUP);
    const long long m0 = (long long)(first + within % height) * BM,
                    n0 = (long long)(within / height) * BN;
    const bool wide = N % 4 == 0 && K % 4 == 0;

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
            float *c = C + (m0 + m) * N + n0;
#pragma unroll
            for (int j = 0; j < TN; j++) {
                const int n = wn + 8 * j + lane % 4 * 2;
                if (wide && m < p.rows && n < p.columns)
                    *(float2 *)(c + n) = make_float2(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
                else if (!wide && m < p.rows)
#pragma unroll
                    for (int l = 0; l < 2; l++)
                        if (n + l < p.columns)
                            c[n + l] = acc[i][j][2 * h + l];
            }
        }
}
