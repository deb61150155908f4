/*---
launch:
  - entry: gemm
    grid: ceil_div(M, BM) * ceil_div(N, BN) * SPLIT
    cluster: SPLIT
    block: 256
    shared: >
      4 * (min(8, (57800 / BLOCKS - (BLOCKS < 3) * (BM + 16) * (BN + 8))
      / (BM * (BK + 4) + BK * (BN + 8))) * (BM * (BK + 4) + BK * (BN + 8))
      + (SPLIT > 1) * (round_up(BM, SPLIT) * (BN + 8) + 4))
    args: [A, B, C, M, N, K]
tune:
  BM: [32, 64, 16, 48, 80, 96, 112, 128]
  BN: [64, 32, 16, 48, 80, 96, 112, 128]
  BK: [64, 32, 24, 40]
  BLOCKS: [1, 2, 3, 4]
  SPLIT: [1, 2, 3, 4, 6, 8]
  where: >
    (min(M, N) <= 128 || M * N <= 32768 * sm_count || BLOCKS > 2)
    && (128 % BM == 0 || 128 % BN == 0) && BM * BN <= 12288
    && (BK == 64 && (BLOCKS == 1 || BLOCKS == 2 && BM * BN <= 2048)
    || BK == 32 && BLOCKS == 2 && BM * BN >= 2048
    || BK < 64 && BLOCKS == 3 + (BM * BN <= 4096) && SPLIT == 1 && K <= 128
    && ceil_div(K, BK) * BK < K + 24 && 128 % BM == 0 && BM * BN % 1024 == 0
    && BM * BN >= 3072 && BM * BN <= 6144)
    && (57800 / BLOCKS - (BLOCKS < 3) * (BM + 16) * (BN + 8))
    / (BM * (BK + 4) + BK * (BN + 8)) >= 2 + (BLOCKS == 2 && BK == 64)
    && ceil_div(M, BM) * BM * 4 <= round_up(M, 16) * 5
    && ceil_div(N, BN) * BN * 4 <= round_up(N, 16) * 5
    && (min(BM, BN) == 16 || BM * BN >= 4096 || BLOCKS > 2
    || ceil_div(M, BM) * ceil_div(N, BN) <= sm_count * (1 + (BM * BN >= 2048)))
    && (SPLIT == 1 || K >= SPLIT * BK
    && ceil_div(M, BM) * ceil_div(N, BN) * SPLIT * 2 <= 3 * sm_count * BLOCKS)
    && (SPLIT == 8 || BLOCKS > 2 || K < 2 * SPLIT * BK
    || ceil_div(M, BM) * ceil_div(N, BN) * SPLIT * 2 >= sm_count * BLOCKS)
---*/
/* C = A B in float32 for few rows or columns, for few tiles, and for short sums: each tile is a
 * cluster's, whose SPLIT blocks have a part of K each, and in a block warps share K out again where a
 * tile is small. The warps' sums meet in shared memory; then each block sends every block of its
 * cluster the rows which that one adds up and stores (st.async, whose bytes a barrier there counts: a
 * release takes longer). Numbers are split into two of tf32 and three products made, as in tf32x3.cu.
 *
 * Where K is short a block's copies and stores have nothing of its own to hide behind. There three or
 * four blocks a processor hide one another's, and warps store what they have.
 *
 * Tiles travel to shared memory by cp.async, STAGES deep, 16 bytes at a time whatever N and K are:
 * where a row does not begin at a multiple of 16 bytes, all those are copied in which it has
 * numbers. How far it is from such a multiple is the same for rows that are a multiple of four
 * apart, so that it is one number for all that a thread reads of A, and one for B. */
#if BLOCKS > 2 /* few registers, and no sums of warps to meet */
#define WM (BM * BN % 2048 == 0 ? 32 : 16)
#define WN (BM * BN / (8 * WM))
#else
#define WM (BM <= 48 ? BM : BM == 96 ? 48 : BM % 32 == 0 ? 32 : BM)
#define WN (WM > 48 ? 16 : BN <= 48 ? BN : BN == 96 ? 48 : BN % 32 == 0 ? 32 : BN / 2)
#endif
#define TM      (WM / 16)
#define TN      (WN / 8)
#define WARPS   8
#define TILES   (BM / WM * (BN / WN)) /* warps beside one another in a tile */
#define DEEP    (WARPS / TILES)       /* warps that share K out */
#define PITCH_A (BK + 4)
#define PITCH_B (BN + 8)
#define STAGE   (BM * PITCH_A + BK * PITCH_B)
#define FIT     ((57800 / BLOCKS - (BLOCKS < 3) * (BM + 16) * PITCH_B) / STAGE)
#define STAGES  (FIT < 8 ? FIT : 8)
#define SHARE   ((BM + SPLIT - 1) / SPLIT) /* rows that a block of a cluster adds up */

static_assert(WARPS % TILES == 0 && BK % (8 * DEEP) == 0, "the tile and K are shared out evenly");
static_assert(DEEP *BM *PITCH_B <= STAGES * STAGE, "the warps' sums fit where the tiles were");

template <int BYTES>
static __device__ __forceinline__ void copy(float *to, const float *from, bool in)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
                     "r"(in ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from),
                     "r"(in ? 4 : 0)
                     : "memory");
}

/* Four numbers, of which the first `count` exist; zeros for the others. */
static __device__ __forceinline__ void copy_some(float *to, const float *from, int count)
{
    if (count >= 4 || count <= 0)
        copy<16>(to, from, count > 0);
    else
#pragma unroll
        for (int i = 0; i < 4; i++)
            copy<4>(to + i, from + i, i < count);
}

/* What a thread copies of a matrix for each step, HEIGHT x WIDTH numbers: from its first row on,
 * every STEP-th row the same 16 bytes, and the next ones where it has a row's last and the row does
 * not end with them. */
template <int HEIGHT, int WIDTH, int PITCH>
struct part {
    static constexpr int LINE = WIDTH <= 16 ? 16 : WIDTH <= 32 ? 32 : WIDTH <= 64 ? 64 : 128;
    static constexpr int STEP = 1024 / LINE;
    const float *from;
    int row, column; /* within the tile */
    bool some, more;

    __device__ __forceinline__ part(const float *matrix, long long row0, long long column0,
                                    long long pitch)
    {
        const int chunk = threadIdx.x % (LINE / 4) * 4;
        row = threadIdx.x / (LINE / 4);
        const int before = (int)(row * pitch & 3);
        column = chunk - before;
        some = chunk < WIDTH;
        more = before > 0 && chunk == WIDTH - 4;
        from = matrix + (row0 + row) * pitch + column0 + column;
    }

    /* INSIDE: what is copied lies inside the matrix, but for rows and columns beyond the last. */
    template <bool INSIDE>
    __device__ __forceinline__ void fetch(float *to, long long pitch, int rows, int columns) const
    {
        const float *there = from;
        to += row * PITCH + threadIdx.x % (LINE / 4) * 4;
        if (INSIDE) {
#pragma unroll
            for (int i = 0; i < HEIGHT; i += STEP, there += STEP * pitch) {
                if (some && (HEIGHT % STEP == 0 || row + i < HEIGHT))
                    copy<16>(to + i * PITCH, there, row + i < rows && column < columns);
                if (more && (HEIGHT % STEP == 0 || row + i < HEIGHT))
                    copy<16>(to + i * PITCH + 4, there + 4,
                             row + i < rows && column + 4 < columns);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < HEIGHT; i += STEP, there += STEP * pitch) {
                const int left = row + i < rows ? columns - column : 0;
                if (row + i >= HEIGHT)
                    break;
                if (some)
                    copy_some(to + i * PITCH, there, left);
                if (more)
                    copy_some(to + i * PITCH + 4, there + 4, left - 4);
            }
        }
    }
};

/* What the unit ignores of `low` is below the last bit of x. (cvt.rna takes twice as long.) */
static __device__ __forceinline__ void split(float x, unsigned *high, unsigned *low)
{
    *high = (__float_as_uint(x) + 0x1000) & 0xffffe000;
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

/* A warp's share of a step; sa, sb: where a lane's first numbers are. */
static __device__ __forceinline__ void multiply_tile(const float *sa, const float *sb,
                                                     float (&acc)[TM][TN][4])
{
    constexpr int AHEAD = BLOCKS == 1 ? 2 : 1; /* what registers there are for */
#pragma unroll AHEAD
    for (int k = 0; k < BK; k += 8 * DEEP) {
        unsigned bh[TN][2], bl[TN][2];
#pragma unroll
        for (int j = 0; j < TN; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                split(sb[(k + 4 * e) * PITCH_B + 8 * j], &bh[j][e], &bl[j][e]);
#pragma unroll
        for (int i = 0; i < TM; i++) {
            unsigned ah[4], al[4];
            float d[TN][4] = {};
#pragma unroll
            for (int e = 0; e < 4; e++)
                split(sa[(16 * i + e % 2 * 8) * PITCH_A + k + e / 2 * 4], &ah[e], &al[e]);
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

/* The sum of `count` tiles, `apart` numbers from one another, to C. */
template <bool WIDE>
static __device__ __forceinline__ void store(const float *tiles, int count, int apart, float *C,
                                             int height, int rows, int columns, long long N)
{
    constexpr int EACH = WIDE ? 4 : 1;
    for (int at = threadIdx.x * EACH; at < height * BN; at += 256 * EACH) {
        const int m = at / BN, n = at % BN;
        float sum[EACH] = {};
#pragma unroll
        for (int p = 0; p < count; p++)
#pragma unroll
            for (int e = 0; e < EACH; e++)
                sum[e] += tiles[p * apart + m * PITCH_B + n + e];
        if (m < rows && n < columns) {
            if (WIDE)
                *(float4 *)(C + m * N + n) =
                    make_float4(sum[0], sum[1 % EACH], sum[2 % EACH], sum[3 % EACH]);
            else
                C[m * N + n] = sum[0];
        }
    }
}

static __device__ __forceinline__ void store(const float *tiles, int count, int apart, float *C,
                                             int height, int rows, int columns, long long N)
{
    if (N % 4 == 0)
        store<true>(tiles, count, apart, C, height, rows, columns, N);
    else
        store<false>(tiles, count, apart, C, height, rows, columns, N);
}

/* A warp's own tile; C: where a lane's first two numbers go. */
static __device__ __forceinline__ void store_own(const float (&acc)[TM][TN][4], float *C, int rows,
                                                 int columns, long long N)
{
#pragma unroll
    for (int i = 0; i < 2 * TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            if (8 * i < rows && 8 * j < columns)
                *(float2 *)(C + 8 * i * N + 8 * j) =
                    make_float2(acc[i / 2][j][i % 2 * 2], acc[i / 2][j][i % 2 * 2 + 1]);
}

/* The sum of this block's warps: each row to the block of the cluster that stores it. */
static __device__ __forceinline__ void send(const float *tiles, float *parts, int rank,
                                            unsigned arrived)
{
    for (int at = threadIdx.x * 4; at < BM * BN; at += 1024) {
        const int m = at / BN, n = at % BN;
        float4 sum = *(const float4 *)(tiles + m * PITCH_B + n);
#pragma unroll
        for (int p = 1; p < DEEP; p++) {
            const float4 more = *(const float4 *)(tiles + (p * BM + m) * PITCH_B + n);
            sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
        }
        const unsigned to = (unsigned)__cvta_generic_to_shared(
            parts + (rank * SHARE + m % SHARE) * PITCH_B + n);
        asm volatile("{\n.reg .b32 there, barrier;\n"
                     "mapa.shared::cluster.u32 there, %0, %2;\n"
                     "mapa.shared::cluster.u32 barrier, %1, %2;\n"
                     "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [there], "
                     "{%3, %4, %5, %6}, [barrier];\n}" ::"r"(to),
                     "r"(arrived), "r"(m / SHARE), "f"(sum.x), "f"(sum.y), "f"(sum.z), "f"(sum.w)
                     : "memory");
    }
}

extern "C" __global__ void __launch_bounds__(256, BLOCKS)
    gemm(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C,
         long long M, long long N, long long K)
{
    extern __shared__ __align__(128) float memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const unsigned down = (unsigned)((M + BM - 1) / BM), across = (unsigned)((N + BN - 1) / BN),
                   number = blockIdx.x / SPLIT;
    const int rank = blockIdx.x % SPLIT;
    const long long m0 = (long long)(down <= across ? number % down : number / across) * BM,
                    n0 = (long long)(down <= across ? number / down : number % across) * BN;
    const int all = (int)((K + BK - 1) / BK), begin = (int)((long long)all * rank / SPLIT),
              end = (int)((long long)all * (rank + 1) / SPLIT); /* in steps of BK */
    const int rows = (int)min(M - m0, (long long)BM), columns = (int)min(N - n0, (long long)BN);
    const int slack = K % 4 == 0 && N % 4 == 0 ? 0 : 4;
    const int first = rank * SHARE, height = min(SHARE, BM - first);
    float *parts = memory + STAGES * STAGE;
    /* Counts the bytes that the cluster sends here. As a static variable it would be before the
     * tiles, which 16 bytes off a line of 128 are up to 15 % slower. */
    const unsigned arrived = (unsigned)__cvta_generic_to_shared(parts + SPLIT * SHARE * PITCH_B);
    if (SPLIT > 1) {
        if (threadIdx.x == 0)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                         "fence.mbarrier_init.release.cluster;\n"
                         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrived),
                         "r"(max(height, 0) * SPLIT * BN * 4)
                         : "memory");
        __syncwarp();
        /* waited for before anything is sent */
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    }

    part<BM, BK, PITCH_A> a(A, m0, begin * (long long)BK, K);
    part<BK, BN, PITCH_B> b(B, begin * (long long)BK, n0, N);
    int filled = begin, to = 0, from = 0;
    auto next = [&]() {
        if (filled < end) {
            float *stage = memory + to * STAGE;
            const int left = (int)min(K - filled * (long long)BK, BK + 4ll);
            if (left >= BK + slack) {
                a.fetch<true>(stage, K, rows, BK);
                b.fetch<true>(stage + BM * PITCH_A, N, BK, columns);
            } else {
                a.fetch<false>(stage, K, rows, left);
                b.fetch<false>(stage + BM * PITCH_A, N, left, columns);
            }
            a.from += BK;
            b.from += BK * N;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        filled++;
        to = to + 1 == STAGES ? 0 : to + 1;
    };
    const int place = warp % TILES, wm = place % (BM / WM) * WM, wn = place / (BM / WM) * WN;
    const int sa = (wm + g) * PITCH_A + (int)(g * K & 3) + warp / TILES * 8 + t,
              sb = BM * PITCH_A + (warp / TILES * 8 + t) * PITCH_B + (int)(t * N & 3) + wn + g;
    float acc[TM][TN][4] = {};
    for (int s = 0; s < STAGES - 1; s++)
        next();
    for (int step = begin; step < end; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads(); /* the tile is here for all, and the one to be replaced was read by all */
        next();
        multiply_tile(memory + from * STAGE + sa, memory + from * STAGE + sb, acc);
        from = from + 1 == STAGES ? 0 : from + 1;
    }
    C += m0 * N + n0;
    if (BLOCKS > 2 && N % 2 == 0) {
        store_own(acc, C + (wm + g) * N + wn + 2 * t, rows - wm - g, columns - wn - 2 * t, N);
        return;
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    float *own = memory + (warp / TILES * BM + wm + g) * PITCH_B + wn + 2 * t;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int j = 0; j < TN; j++)
                *(float2 *)(own + (16 * i + 8 * h) * PITCH_B + 8 * j) =
                    make_float2(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
    __syncthreads();
    if (SPLIT == 1) {
        store(memory, DEEP, BM * PITCH_B, C, BM, rows, columns, N);
        return;
    }
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    send(memory, parts, rank, arrived);
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(arrived)
                     : "memory");
    store(parts, SPLIT, SHARE * PITCH_B, C + first * N, height, rows - first, columns, N);
}
