/*---
launch:
  - entry: gemm
    grid: ceil_div(N, BN), ceil_div(M, 16 * MT)
    block: 32 * WARPS
    shared: WARPS * STAGES * (128 * BN + 2048 * MT)
    args: [A, B, C, M, N, K]
tune:
  BN: [32, 64]
  MT: [1, 2, 4]
  WARPS: [8, 4, 16]
  STAGES: [3, 4, 6, 2]
  where: >
    N % 8 == 0 && K % 8 == 0 && M <= 512
    && WARPS * STAGES * (128 * BN + 2048 * MT) <= 232448
    && STAGES * (128 * BN + 2048 * MT) >= 64 * MT * BN
---*/
/* For few rows of A, where the time is B's way from memory: a block has 16 MT rows and BN columns
 * of C, and each of its warps has every WARPS-th 64 of K to itself, with STAGES of them on the way
 * and nobody to wait for. mma.sync on 16 x 8 x 16; the warps' sums meet in shared memory at the
 * end. Matrices whose rows are not aligned to 16 bytes are copied a number at a time. */
#include <cuda_fp16.h>

#define DEPTH   64
#define B_BYTES (DEPTH * BN * 2)
#define STAGE   (B_BYTES + MT * 16 * DEPTH * 2)

/* What is read once leaves the L2 first, so that it does not push out what others wrote there.
 * Both as CUTLASS has them: what createpolicy makes of evict_normal is slower. */
#define EVICT_FIRST  0x12f0000000000000ull
#define EVICT_NORMAL 0x1000000000000000ull

typedef unsigned short u16;

/* Where 16 bytes of a row of `chunks` of them lie: turned by the row, so that the eight rows that
 * ldmatrix reads at once are in different banks. */
static __device__ __forceinline__ unsigned place(int row, int chunk, int chunks)
{
    const int turn = chunks == 8 ? row & 7 : row >> 1 & 3;
    return (row * chunks + (chunk ^ turn)) * 16;
}

static __device__ __forceinline__ void copy16(unsigned to, const u16 *from, bool inside,
                                              unsigned long long policy)
{
    asm volatile(
        "cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(to),
        "l"(from), "r"(inside ? 16 : 0), "l"(policy)
        : "memory");
}

/* Rows row0.. and columns column0.. of a matrix into shared memory; zeros outside. */
static __device__ __forceinline__ void fetch(unsigned char *to, const u16 *from, long long rows,
                                             long long columns, long long row0, long long column0,
                                             int height, int chunks, bool aligned,
                                             unsigned long long policy)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    for (int i = threadIdx.x % 32; i < height * chunks; i += 32) {
        const int row = i / chunks, chunk = i % chunks;
        const long long r = row0 + row, c = column0 + chunk * 8;
        if (aligned) {
            const bool inside = r < rows && c < columns;
            copy16(shared + place(row, chunk, chunks), inside ? from + r * columns + c : from,
                   inside, policy);
        } else {
            u16 *numbers = (u16 *)(to + place(row, chunk, chunks));
            for (int k = 0; k < 8; k++)
                numbers[k] = r < rows && c + k < columns ? from[r * columns + c + k] : 0;
        }
    }
}

static __device__ __forceinline__ void load_matrices(unsigned *to, unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

static __device__ __forceinline__ void load_turned(unsigned *to, unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

static __device__ __forceinline__ void multiply(float *sums, const unsigned *a, const unsigned *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    gemm(const u16 *A, const u16 *B, u16 *C, long long M, long long N, long long K)
{
    extern __shared__ __align__(128) unsigned char shared[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long m0 = blockIdx.y * (16ll * MT), n0 = blockIdx.x * (long long)BN;
    const bool aligned = K % 8 == 0 && N % 8 == 0;
    const unsigned long long once = gridDim.y == 1 ? EVICT_FIRST : EVICT_NORMAL;
    const long long parts = (K + DEPTH - 1) / DEPTH;
    unsigned char *own = shared + warp * STAGES * STAGE;
    float sums[MT][BN / 8][4] = {};

    auto begin = [&](long long part, int stage) {
        if (part < parts) {
            unsigned char *to = own + stage * STAGE;
            fetch(to, B, K, N, part * DEPTH, n0, DEPTH, BN / 8, aligned, once);
            fetch(to + B_BYTES, A, M, K, m0, part * DEPTH, MT * 16, DEPTH / 8, aligned,
                  EVICT_NORMAL);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    for (int i = 0; i < STAGES - 1; i++)
        begin(warp + i * WARPS, i);
    int stage = 0;
    for (long long part = warp; part < parts; part += WARPS) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncwarp();
        begin(part + (STAGES - 1ll) * WARPS, (stage + STAGES - 1) % STAGES);
        const unsigned b_tile = (unsigned)__cvta_generic_to_shared(own + stage * STAGE),
                       a_tile = b_tile + B_BYTES;
#pragma unroll
        for (int k = 0; k < DEPTH / 16; k++) {
            unsigned a[MT][4], b[BN / 16][4];
#pragma unroll
            for (int i = 0; i < MT; i++)
                load_matrices(a[i], a_tile + place(i * 16 + lane % 16, k * 2 + lane / 16, 8));
#pragma unroll
            for (int j = 0; j < BN / 16; j++)
                load_turned(b[j], b_tile + place(k * 16 + lane % 16, j * 2 + lane / 16, BN / 8));
#pragma unroll
            for (int i = 0; i < MT; i++)
#pragma unroll
                for (int j = 0; j < BN / 8; j++)
                    multiply(sums[i][j], a[i], &b[j / 2][j % 2 * 2]);
        }
        __syncwarp();
        stage = (stage + 1) % STAGES;
    }
    asm volatile("cp.async.wait_all;" ::: "memory");

    float *all = (float *)shared; /* of each warp, 16 MT rows of BN */
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < BN / 8; j++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                all[(warp * MT * 16 + i * 16 + lane / 4 + k / 2 * 8) * BN + j * 8 + lane % 4 * 2 +
                    k % 2] = sums[i][j][k];
    __syncthreads();
    for (int at = threadIdx.x; at < MT * 16 * BN; at += 32 * WARPS) {
        const long long m = m0 + at / BN, n = n0 + at % BN;
        float sum = 0;
        for (int i = 0; i < WARPS; i++)
            sum += all[i * MT * 16 * BN + at];
        if (m < M && n < N)
            C[m * N + n] = __half_as_ushort(__float2half(sum));
    }
}
