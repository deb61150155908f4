/*---
launch:
  - entry: gemm_part
    grid: ceil_div(M, BM) * ceil_div(N, BN), SPLIT
    block: BM * BN / (TM * TN)
    shared: 4 * STAGES * BK * (BM + 4 + BN)
    args: [A, B, parts, M, N, K]
  - entry: gather
    grid: ceil_div(M * N, 256)
    block: 256
    args: [parts, C, M, N]
workspace:
  parts: {shape: [SPLIT, M, N], dtype: float32}
tune:
  SPLIT: [8, 4, 2, 3, 6]
  BM: [64, 128]
  BN: [64, 128]
  BK: [16, 8, 32]
  TM: [4, 8]
  TN: [8, 4]
  STAGES: [2, 3, 4]
  BLOCKS: [3, 2, 4, 1]
  GROUP: [8, 1, 4]
  where: >
    BM % (4*TM) == 0 && BN % (8*TN) == 0 && TM*TN <= 128
    && BM*BN >= 64*TM*TN && BM*BN <= 512*TM*TN
    && BLOCKS * 4*STAGES*BK*(BM + 4 + BN) <= 200000 && 4*STAGES*BK*(BM + 4 + BN) <= 99000
    && BLOCKS * BM*BN/(TM*TN) * (TM*TN + 2*(TM + TN) + 32) <= 65536
---*/
/* C = A B for few tiles: the numbers that are summed over are split into SPLIT parts, each of which
 * has blocks of its own and writes its C to a workspace; a second launch adds the parts up. What it
 * costs in traffic it returns in processors at work. The product itself: a block makes BM x BN
 * numbers of C, a thread TM x TN of them in registers, in groups of four by four. Tiles of A and B
 * travel to shared memory by cp.async, STAGES deep with one barrier a tile; A is turned on the way,
 * so that both fragments are 16-byte reads. Lanes are laid out so that neighbours share A's address
 * and lanes two apart B's: each read then takes two passes and not four. Edges are zeros in the
 * tiles and guards on the stores. Blocks run in groups of GROUP rows of tiles, which keeps what
 * they share in L2. */
#define THREADS (BM * BN / (TM * TN))
#define PITCH   (BM + 4)
#define STAGE   (BK * (PITCH + BN))

static_assert(THREADS % BK == 0 && BM % (THREADS / BK) == 0, "the tile of A is shared out evenly");
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

/* Where a thread reads and writes: the same for every tile. */
struct place {
    const float *a, *b; /* its first number of A, of B, in the tile that is copied next */
    long long K, N;
    int rows, columns; /* of the block's tile, that exist */
    int tid;
};

/* WIDE: rows of B are aligned to 16 bytes. FULL: the tile lies inside A and B. */
template <bool WIDE, bool FULL>
static __device__ __forceinline__ void fill(const struct place *p, float *stage, long long depth)
{
    const int ak = p->tid % BK, am = p->tid / BK;
#pragma unroll
    for (int i = 0; i < BM * BK / THREADS; i++) {
        const int m = am + i * (THREADS / BK);
        copy<4>(stage + ak * PITCH + m, p->a + i * (THREADS / BK) * p->K,
                FULL || (m < p->rows && ak < depth));
    }
    float *sb = stage + BK * PITCH;
    if (WIDE) {
        const int bn = p->tid % (BN / 4) * 4, bk = p->tid / (BN / 4);
        constexpr int STEP = THREADS / (BN / 4);
#pragma unroll
        for (int i = 0; i < (BK + STEP - 1) / STEP; i++)
            if (BK % STEP == 0 || bk + i * STEP < BK)
                copy<16>(sb + (bk + i * STEP) * BN + bn, p->b + i * STEP * p->N,
                         FULL || (bn < p->columns && bk + i * STEP < depth));
    } else {
#pragma unroll 4
        for (int e = p->tid; e < BK * BN; e += THREADS)
            copy<4>(sb + e, p->b + e / BN * p->N + e % BN, e % BN < p->columns && e / BN < depth);
    }
}

static __device__ __forceinline__ void multiply(const float *stage, int am, int bn,
                                                float (&acc)[TM][TN])
{
    const float *sa = stage + am, *sb = stage + BK * PITCH + bn;
    float a[2][TM], b[2][TN];
    auto load = [&](int k) {
#pragma unroll
        for (int g = 0; g < TM / 4; g++)
            *(float4 *)&a[k % 2][4 * g] = *(const float4 *)(sa + k * PITCH + 16 * g);
#pragma unroll
        for (int g = 0; g < TN / 4; g++)
            *(float4 *)&b[k % 2][4 * g] = *(const float4 *)(sb + k * BN + 32 * g);
    };
    load(0);
#pragma unroll
    for (int k = 0; k < BK; k++) {
        if (k + 1 < BK)
            load(k + 1);
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++)
                acc[i][j] = fmaf(a[k % 2][i], b[k % 2][j], acc[i][j]);
    }
}

template <bool WIDE>
static __device__ __forceinline__ void run(struct place p, long long sum, float *tiles, int am,
                                           int bn, float (&acc)[TM][TN])
{
    const long long steps = (sum + BK - 1) / BK;
    const bool inside = WIDE && p.rows == BM && p.columns == BN;
    int to = 0, from = 0;
    long long filled = 0;
    auto next = [&]() {
        if (filled < steps) {
            const long long depth = sum - filled * BK;
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
        multiply(tiles + from * STAGE, am, bn, acc);
        from = from + 1 == STAGES ? 0 : from + 1;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm_part(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ parts,
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
    const bool wide = N % 4 == 0;
    /* Whole tiles each; the last parts may be short, or empty and then zeros. */
    const long long length = ((K + BK - 1) / BK + SPLIT - 1) / SPLIT * BK,
                    begin = blockIdx.y * length;
    const long long sum = max(min(K - begin, length), 0ll);
    float *C = parts + blockIdx.y * M * N;

    struct place p;
    p.tid = tid;
    p.K = K;
    p.N = N;
    p.rows = (int)min(M - m0, (long long)BM);
    p.columns = (int)min(N - n0, (long long)BN);
    p.a = A + begin + (m0 + tid / BK) * K + tid % BK;
    p.b = B + begin * N + n0 + (wide ? tid / (BN / 4) * N + tid % (BN / 4) * 4 : 0);

    /* Bits of the lane: n0 m0 n1 n2 m1. */
    const int ty = (lane >> 1 & 1) | (lane >> 4 & 1) << 1, tx = (lane & 1) | (lane >> 2 & 3) << 1;
    const int am = warp % (BM / (4 * TM)) * (4 * TM) + 4 * ty,
              bn = warp / (BM / (4 * TM)) * (8 * TN) + 4 * tx;
    float acc[TM][TN] = {};
    if (wide)
        run<true>(p, sum, tiles, am, bn, acc);
    else
        run<false>(p, sum, tiles, am, bn, acc);

#pragma unroll
    for (int i = 0; i < TM; i++) {
        const int m = am + i / 4 * 16 + i % 4;
        float *c = C + (m0 + m) * N + n0;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int n = bn + j / 4 * 32;
            if (wide && m < p.rows && n < p.columns)
                *(float4 *)(c + n) =
                    make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
            else if (!wide && m < p.rows)
#pragma unroll
                for (int l = 0; l < 4; l++)
                    if (n + l < p.columns)
                        c[n + l] = acc[i][j + l];
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 1)
    gather(const float *__restrict__ parts, float *__restrict__ C, long long M, long long N)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i >= M * N)
        return;
    float sum = 0;
#pragma unroll
    for (int s = 0; s < SPLIT; s++)
        sum += parts[s * M * N + i];
    C[i] = sum;
}
