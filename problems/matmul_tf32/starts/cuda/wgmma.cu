/*---
launch:
  - entry: gemm
    grid: min(ceil_div(M, BM) * ceil_div(N, 128), sm_count)
    block: 384
    shared: STAGES * (128 * BM + 16384) + 2048
    args: [tile_a, tile_b, A, B, C, M, N, K]
tma:
  tile_a: {tensor: A, box: [BM, 32], swizzle: 128B, l2: 256B, type: tf32}
  tile_b: {tensor: B, box: [32, 32], swizzle: 128B, l2: 256B, type: tf32}
tune:
  BM: [256, 128]
  STAGES: [4, 3, 6]
  GROUP: [8, 4, 16, 1]
  where: STAGES * (128 * BM + 16384) + 2048 <= 232448
---*/
/* wgmma in tf32, fed by the copy engine, which rounds on the way. In tf32 wgmma reads both factors
 * from shared memory only if the numbers that are summed over lie side by side, as A's do and B's
 * do not. So C is made transposed: B is the first factor, which may come from registers, read there
 * in the order that is wanted, and A as it lies the second. Of three warpgroups the first copies
 * tiles of BM x 32 of A and 32 x 128 of B into STAGES stages, the other two multiply 64 columns of
 * B each. A stage's `full` barrier counts the bytes that arrive, its `empty` barrier the eight
 * warps that are done with it. Blocks stay, and take one tile of C after another. Matrices whose
 * rows are not aligned to 16 bytes have no tensor map and go by plain loops. */
#define STAGE_BYTES (128 * BM + 16384)
#define PANEL_BYTES 4096 /* 32 x 32 of B */

struct alignas(64) map {
    char bytes[128];
};

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

static __device__ __forceinline__ void fetch(unsigned to, const struct map *map, int x, int y,
                                             unsigned barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}

/* Rows of 128 bytes, swizzled, in groups of eight. */
static __device__ __forceinline__ unsigned long long describe(unsigned at)
{
    return (unsigned long long)((at & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

/* 64 columns of B by BM rows of A, over eight numbers of the sum. */
static __device__ __forceinline__ void multiply(float (&d)[BM / 2], const unsigned (&f)[4],
                                                unsigned long long a)
{
#if BM == 256
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
        "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
        "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
        "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"
        "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"
        "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
        "}, {%128,%129,%130,%131}, %132, 1, 1, 1;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
          "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
          "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
          "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
          "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
          "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
          "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
          "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]),
          "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]),
          "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),
          "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]),
          "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]),
          "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
          "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]),
          "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]),
          "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]),
          "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
        : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "l"(a));
#else
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
                 "}, {%64,%65,%66,%67}, %68, 1, 1, 1;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
                   "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
                   "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                   "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "l"(a));
#endif
}

static __device__ __forceinline__ void read(unsigned *x, unsigned *y, unsigned from)
{
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(*x), "=r"(*y) : "r"(from) : "memory");
}

/* Tile `number` of C, in groups of GROUP rows of tiles. */
static __device__ __forceinline__ void tile_at(int number, int down, int across, int *m0, int *n0)
{
    const int first = number / (GROUP * across) * GROUP, within = number % (GROUP * across);
    const int height = min(down - first, GROUP);
    *m0 = (first + within % height) * BM;
    *n0 = within / height * 128;
}

static __device__ void plain(const float *A, const float *B, float *C, long long M, long long N,
                             long long K)
{
    for (long long i = blockIdx.x * 384ll + threadIdx.x; i < M * N; i += gridDim.x * 384ll) {
        const float *a = A + i / N * K, *b = B + i % N;
        float sum = 0;
        for (long long k = 0; k < K; k++)
            sum = fmaf(a[k], b[k * N], sum);
        C[i] = sum;
    }
}

static __device__ __forceinline__ void copy_tiles(const struct map *map_a, const struct map *map_b,
                                                  unsigned stages, unsigned barriers, int down,
                                                  int across, int steps)
{
    int slot = 0;
    unsigned parity = 1; /* nobody waits for a stage that was never filled */
    for (int number = blockIdx.x; number < down * across; number += gridDim.x) {
        int m0, n0;
        tile_at(number, down, across, &m0, &n0);
        for (int step = 0; step < steps; step++) {
            const unsigned full = barriers + 16 * slot, stage = stages + slot * STAGE_BYTES;
            barrier_wait(full + 8, parity);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                         "r"(STAGE_BYTES)
                         : "memory");
            fetch(stage, map_a, step * 32, m0, full);
#pragma unroll
            for (int p = 0; p < 4; p++)
                fetch(stage + 128 * BM + PANEL_BYTES * p, map_b, n0 + 32 * p, step * 32, full);
            if (++slot == STAGES) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
}

/* A warp has 16 columns of B: four times four neighbours of which a thread reads two, its `low` and
 * `high` row of the first factor. They are dealt out so that what 16 threads read lies in different
 * banks, swizzle and all. */
static __device__ __forceinline__ void multiply_tiles(float *C, long long M, long long N,
                                                      unsigned stages, unsigned barriers, int down,
                                                      int across, int steps)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, group = threadIdx.x / 128 - 1;
    const int g = lane / 4, t = lane % 4, panel = 2 * group + warp / 2;
    const int four = warp % 2 * 2 + g % 2 * 4 + g / 4, column = 4 * four + g / 2 % 2 * 2;
    const unsigned panel_at = 128 * BM + PANEL_BYTES * panel + column % 4 * 4;
    const unsigned low = panel_at + 128 * t + 16 * (four ^ t),
                   high = panel_at + 128 * (t + 4) + 16 * (four ^ (t + 4));
    unsigned parts[2][4][4];
    int slot = 0;
    unsigned parity = 0;
    for (int number = blockIdx.x; number < down * across; number += gridDim.x) {
        int m0, n0;
        float d[BM / 2] = {};
        tile_at(number, down, across, &m0, &n0);
        auto get = [&](unsigned(&part)[4][4]) {
            const unsigned stage = stages + slot * STAGE_BYTES;
            barrier_wait(barriers + 16 * slot, parity);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                read(&part[k][0], &part[k][1], stage + low + 1024 * k);
                read(&part[k][2], &part[k][3], stage + high + 1024 * k);
            }
        };
        /* The next part is read while this one is multiplied. */
        auto use = [&](unsigned(&part)[4][4], unsigned(&next)[4][4], bool last) {
            const int used = slot;
            const unsigned long long a = describe(stages + slot * STAGE_BYTES);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; k++)
                multiply(d, part[k], a + 2 * k);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            if (++slot == STAGES) {
                slot = 0;
                parity ^= 1;
            }
            if (!last)
                get(next);
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            if (lane == 0)
                asm volatile(
                    "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barriers + 16 * used + 8)
                    : "memory");
        };
        get(parts[0]);
        for (int step = 0; step < steps; step += 2) {
            use(parts[0], parts[1], step + 1 == steps);
            if (step + 1 < steps)
                use(parts[1], parts[0], step + 2 == steps);
        }
        const long long n = n0 + 32 * panel + column;
#pragma unroll
        for (int j = 0; j < BM / 8; j++) {
            const long long m = m0 + 8 * j + 2 * t;
            if (n < N && m < M)
                *(float2 *)(C + m * N + n) = make_float2(d[4 * j], d[4 * j + 2]);
            if (n < N && m + 1 < M)
                *(float2 *)(C + (m + 1) * N + n) = make_float2(d[4 * j + 1], d[4 * j + 3]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
    gemm(const __grid_constant__ struct map tile_a, const __grid_constant__ struct map tile_b,
         const float *A, const float *B, float *C, long long M, long long N, long long K)
{
    extern __shared__ char memory[];
    if (N % 4 != 0 || K % 4 != 0) {
        plain(A, B, C, M, N, K);
        return;
    }
    const unsigned base = ((unsigned)__cvta_generic_to_shared(memory) + 1023) / 1024 * 1024;
    const unsigned barriers = base + STAGES * STAGE_BYTES;
    const int down = (int)((M + BM - 1) / BM), across = (int)((N + 127) / 128),
              steps = (int)((K + 31) / 32);
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(barriers + 16 * s, 1);
            barrier_init(barriers + 16 * s + 8, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x / 128 == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            copy_tiles(&tile_a, &tile_b, base, barriers, down, across, steps);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply_tiles(C, M, N, base, barriers, down, across, steps);
    }
}
