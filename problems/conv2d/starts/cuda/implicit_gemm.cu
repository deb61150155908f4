/*---
launch:
  - entry: conv2d
    grid: ceil_div(N * OH * OW, BN) * ceil_div(K, BM)
    block: BM * BN / (TM * TN)
    shared: 4 * STAGES * BK * (BM + 4 + BN) + 32 * BK
    args: [X, F, Y, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW]
tune:
  BM: [64, 96, 128, 32]
  BN: [128, 64, 256]
  BK: [32, 16, 8]
  TM: [8, 4]
  TN: [8, 4]
  STAGES: [2, 3, 4]
  BLOCKS: [2, 4, 1, 3]
  where: >
    BM % (4*TM) == 0 && BN % (8*TN) == 0 && BM % (TM*TN) == 0
    && BM*BN >= 64*TM*TN && BM*BN <= 512*TM*TN && BM * BN / (TM*TN) % BK == 0
    && BM % (BM * BN / (TM*TN*BK)) == 0
    && BLOCKS * (4*STAGES*BK*(BM + 4 + BN) + 32*BK) <= 200000
    && 4*STAGES*BK*(BM + 4 + BN) + 32*BK <= 99000
    && BLOCKS * BM*BN/(TM*TN) * (TM*TN + 2*(TM + TN) + 32) <= 65536
---*/
/* A convolution as a matrix product that is never written out: BM filters times BN pixels, summed
 * over the C*R*S taps in tiles of BK. The filter is a matrix as it lies; a pixel's tap is gathered
 * by cp.async from the image, or is zero in the padding. A thread gathers for one pixel alone,
 * whose place is computed once; where a tap lies (its offset in the image, its row and column) is
 * computed by one thread of the block for all, a tile ahead. Registers, buffers and lanes are as in
 * matmul's simt.cu. */
#define THREADS (BM * BN / (TM * TN))
#define PITCH   (BM + 4)
#define STAGE   (BK * (PITCH + BN))

static_assert(THREADS % BK == 0 && BM % (THREADS / BK) == 0, "filters are shared out evenly");
static_assert(THREADS % BN == 0, "a thread gathers for one pixel");

static __device__ __forceinline__ void copy(float *to, const float *from, bool in)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from),
                 "r"(in ? 4 : 0)
                 : "memory");
}

struct place {
    const float *filter,
        *image; /* first number of the filter to copy; where the pixel's window begins */
    long long taps;
    int top, left, height, width; /* of the window, which may lie outside; of the image */
    int filters;                  /* of the block's that exist */
    bool pixel;                   /* exists */
    int tid;
};

struct tap {
    int offset, row, column, unused;
};

static __device__ __forceinline__ void fill(const struct place *p, float *stage,
                                            const struct tap *taps, long long depth)
{
    const int ak = p->tid % BK, am = p->tid / BK;
#pragma unroll
    for (int i = 0; i < BM * BK / THREADS; i++) {
        const int m = am + i * (THREADS / BK);
        copy(stage + ak * PITCH + m, p->filter + i * (THREADS / BK) * p->taps,
             m < p->filters && ak < depth);
    }
    const int bn = p->tid % BN, bk = p->tid / BN;
    float *sb = stage + BK * PITCH;
#pragma unroll
    for (int i = 0; i < (BK + THREADS / BN - 1) / (THREADS / BN); i++) {
        const int k = bk + i * (THREADS / BN);
        if (BK % (THREADS / BN) != 0 && k >= BK)
            break;
        const int4 tap = *(const int4 *)(taps + k);
        const int h = p->top + tap.y, w = p->left + tap.z;
        const bool in = p->pixel && k < depth && h >= 0 && h < p->height && w >= 0 && w < p->width;
        copy(sb + k * BN + bn, p->image + tap.x, in);
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

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    conv2d(const float *__restrict__ X, const float *__restrict__ F, float *__restrict__ Y,
           long long N, long long C, long long H, long long W, long long K, long long R,
           long long S, long long PAD, long long STRIDE, long long OH, long long OW)
{
    extern __shared__ __align__(16) float tiles[];
    struct tap *table = (struct tap *)(tiles + STAGES * STAGE); /* of two tiles */
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const unsigned down = (unsigned)((K + BM - 1) / BM);
    const long long k0 = (long long)(blockIdx.x % down) * BM,
                    n0 = (long long)(blockIdx.x / down) * BN;
    const long long outs = OH * OW, pixels = N * outs, taps = C * R * S,
                    steps = (taps + BK - 1) / BK;

    struct place p;
    const long long pixel = n0 + tid % BN, out = pixel % outs;
    p.tid = tid;
    p.taps = taps;
    p.pixel = pixel < pixels;
    p.height = (int)H;
    p.width = (int)W;
    p.top = (int)(out / OW * STRIDE - PAD);
    p.left = (int)(out % OW * STRIDE - PAD);
    p.image = X + pixel / outs * C * H * W + (long long)p.top * W + p.left;
    p.filters = (int)min(K - k0, (long long)BM);
    p.filter = F + (k0 + tid / BK) * taps + tid % BK;

    auto locate = [&](long long step) { /* the taps of a tile */
                                        if (tid < BK) {
                                            const int tap = (int)(step * BK) + tid,
                                                      c = tap / (int)(R * S),
                                                      rs = tap % (int)(R * S);
                                            const int r = rs / (int)S, s = rs % (int)S;
                                            *(int4 *)(table + step % 2 * BK + tid) =
                                                make_int4((int)((c * H + r) * W + s), r, s, 0);
                                        }
    };
    long long filled = 0;
    int to = 0, from = 0;
    auto next = [&]() {
        if (filled < steps) {
            fill(&p, tiles + to * STAGE, table + filled % 2 * BK, taps - filled * BK);
            p.filter += BK;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        filled++;
        to = to + 1 == STAGES ? 0 : to + 1;
    };

    /* Bits of the lane: n0 m0 n1 n2 m1. */
    const int ty = (lane >> 1 & 1) | (lane >> 4 & 1) << 1, tx = (lane & 1) | (lane >> 2 & 3) << 1;
    const int am = warp % (BM / (4 * TM)) * (4 * TM) + 4 * ty,
              bn = warp / (BM / (4 * TM)) * (8 * TN) + 4 * tx;
    float acc[TM][TN] = {};
    locate(0);
    __syncthreads();
    for (int s = 0; s < STAGES - 1; s++) {
        next();
        locate(filled);
        __syncthreads();
    }
    for (long long step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads(); /* tile and table are here for all, and what is to be replaced was read by
                            all */
        next();
        locate(filled);
        multiply(tiles + from * STAGE, am, bn, acc);
        from = from + 1 == STAGES ? 0 : from + 1;
    }

    const bool wide = outs % 4 == 0; /* four pixels of a group are then of one image, and aligned */
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
        const long long first = n0 + bn + j / 4 * 32;
#pragma unroll
        for (int l = 0; l < 4; l++) {
            const long long n = first + l;
            if (n >= pixels || (wide && l > 0))
                break;
            float *y = Y + n / outs * K * outs + n % outs + k0 * outs;
#pragma unroll
            for (int i = 0; i < TM; i++) {
                const int m = am + i / 4 * 16 + i % 4;
                if (m >= p.filters)
                    continue;
                if (wide)
                    *(float4 *)(y + m * outs) =
                        make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
                else
                    y[m * outs] = acc[i][j + l];
            }
        }
    }
}
