/*---
launch:
  - entry: conv2d
    grid: sm_count * RESIDENT
    block: 32 * FILTERS * ROWS
    shared: >
      min(232448, 64 * FILTERS * round_up(C*R*S, 8) + 4 * round_up(C*R*S, 8)
      + 8 * C * ((ROWS - 1)*STRIDE + R) * ((8*COLUMNS - 1)*STRIDE + S))
    args: [X, F, Y, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW]
tune:
  FILTERS: [6, 4, 3, 2]
  COLUMNS: [7, 4, 8]
  ROWS: [2, 1, 3, 4]
  RESIDENT: [1, 2, 3]
  where: FILTERS * ROWS <= 16 && RESIDENT * 32*FILTERS*ROWS * (8*COLUMNS + 64) <= 65536
---*/
/* A convolution in float32 on tensor cores that know tf32: numbers are split into two parts, three
 * of the four products of parts are made, and sums of more than eight are made outside, as in
 * matmul's tf32x3.cu. A block keeps 16 * FILTERS filters in shared memory, in the order in which
 * the fragments are read, and goes through its share of the images in pieces of ROWS output rows by
 * 8 * COLUMNS pixels. What a piece needs of the image lies in shared memory as it lies in memory,
 * each number once: a pixel's tap is found by an offset that depends on the tap alone. The next
 * piece is on its way by cp.async. A warp makes 16 filters of one of the rows. Filters that do not
 * fit are multiplied a number at a time. */
#define WARPS   (FILTERS * ROWS)
#define THREADS (32 * WARPS)
#define PIXELS  (8 * COLUMNS)
#define MOST    232448

struct shape {
    int C, H, W, K, R, S, pad, stride, OH, OW;
    int taps, steps;          /* of a filter; of eight taps, the last perhaps not full */
    int rows, pitch;          /* of a channel's part of a piece */
    int down, across, groups; /* pieces of an image, groups of filters */
};

/* A piece of an image, for a group of filters. */
struct place {
    long long n;
    int row, column, filter;
};

static __device__ __forceinline__ void copy(float *to, const float *from, bool in)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from),
                 "r"(in ? 4 : 0)
                 : "memory");
}

static __device__ __forceinline__ void copied(bool all)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (all)
        asm volatile("cp.async.wait_group 0;" ::: "memory");
    else
        asm volatile("cp.async.wait_group 1;" ::: "memory");
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

/* Pieces are counted across, down, by image, by group of filters. */
static __device__ __forceinline__ struct place place_of(const struct shape *s, long long N,
                                                        long long piece)
{
    const int across = (int)(piece % s->across);
    piece /= s->across;
    const int down = (int)(piece % s->down);
    piece /= s->down;
    return {piece % N, down * ROWS, across * PIXELS, (int)(piece / N) * 16 * FILTERS};
}

/* A warp takes every WARPS-th row of all channels. */
static __device__ __forceinline__ void fetch(const float *X, const struct shape *s,
                                             struct place place, float *to)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int top = place.row * s->stride - s->pad, left = place.column * s->stride - s->pad;
    const float *image = X + place.n * s->C * s->H * s->W;
    for (int i = warp; i < s->C * s->rows; i += WARPS) {
        const int h = top + i % s->rows;
        const bool there = h >= 0 && h < s->H;
        const float *row = image + ((long long)(i / s->rows) * s->H + (there ? h : 0)) * s->W;
        for (int j = lane; j < s->pitch; j += 32) {
            const int w = left + j;
            const bool in = there && w >= 0 && w < s->W;
            copy(to + i * s->pitch + j, row + (in ? w : 0), in);
        }
    }
}

/* Filters from `first` on: of each eight taps the four numbers of each lane are neighbours. */
static __device__ __forceinline__ void keep(const float *F, const struct shape *s, int first,
                                            float4 *kept)
{
    for (int i = threadIdx.x; i < FILTERS * s->steps * 32; i += THREADS) {
        const int k = i / 32 % s->steps * 8 + i % 4,
                  m = first + i / 32 / s->steps * 16 + i % 32 / 4;
        const float *f = F + (long long)m * s->taps + k;
        const bool a = k < s->taps, b = k + 4 < s->taps, low = m < s->K, high = m + 8 < s->K;
        kept[i] = make_float4(a && low ? f[0] : 0.0f, a && high ? f[8ll * s->taps] : 0.0f,
                              b && low ? f[4] : 0.0f, b && high ? f[8ll * s->taps + 4] : 0.0f);
    }
}

/* Eight taps of 16 filters and PIXELS pixels; ALL: all of them exist. */
template <bool ALL>
static __device__ __forceinline__ void step(float4 filters, const float *x0, const float *x1,
                                            int left, int next, float (&sum)[COLUMNS][4])
{
    const bool in0 = ALL || threadIdx.x % 4 < left, in1 = ALL || threadIdx.x % 4 + 4 < left;
    unsigned ah[4], al[4];
    split(filters.x, &ah[0], &al[0]);
    split(filters.y, &ah[1], &al[1]);
    split(filters.z, &ah[2], &al[2]);
    split(filters.w, &ah[3], &al[3]);
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
        unsigned bh[2], bl[2];
        float d[4] = {};
        split(in0 ? x0[j * next] : 0.0f, &bh[0], &bl[0]);
        split(in1 ? x1[j * next] : 0.0f, &bh[1], &bl[1]);
        multiply(d, al, bh);
        multiply(d, ah, bl);
        multiply(d, ah, bh);
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[j][i] += d[i];
    }
}

/* 16 filters of one output row: `from` is where its first pixel's window begins. */
static __device__ __forceinline__ void convolve(const float4 *kept, const float *from,
                                                const int *offsets, const struct shape *s,
                                                float (&sum)[COLUMNS][4])
{
    const int lane = threadIdx.x % 32, next = 8 * s->stride;
    from += lane / 4 * s->stride;
    kept += lane;
    offsets += lane % 4;
#pragma unroll
    for (int j = 0; j < COLUMNS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[j][i] = 0;
#pragma unroll 2
    for (int k = 0; k < s->taps / 8; k++, kept += 32, offsets += 8)
        step<true>(*kept, from + offsets[0], from + offsets[4], 8, next, sum);
    if (s->taps % 8 != 0)
        step<false>(*kept, from + offsets[0], from + offsets[4], s->taps % 8, next, sum);
}

static __device__ __forceinline__ void store(float *Y, const struct shape *s, struct place place,
                                             const float (&sum)[COLUMNS][4])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = place.filter + warp % FILTERS * 16 + lane / 4;
    const long long plane = (long long)s->OH * s->OW;
    float *y =
        Y + (place.n * s->K + first) * plane + (place.row + warp / FILTERS) * (long long)s->OW;
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (first + 8 * h < s->K)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int column = place.column + 8 * j + lane % 4 * 2 + i;
                    if (column < s->OW)
                        y[8 * h * plane + column] = sum[j][2 * h + i];
                }
}

/* A number at a time. */
static __device__ void plainly(const float *X, const float *F, float *Y, long long N,
                               const struct shape *s)
{
    const long long plane = (long long)s->OH * s->OW, all = N * s->K * plane;
    for (long long i = blockIdx.x * (long long)THREADS + threadIdx.x; i < all;
         i += gridDim.x * (long long)THREADS) {
        const int top = (int)(i / s->OW % s->OH) * s->stride - s->pad,
                  left = (int)(i % s->OW) * s->stride - s->pad;
        const float *f = F + i / plane % s->K * s->taps,
                    *image = X + i / plane / s->K * s->C * s->H * s->W;
        float sum = 0;
        for (int c = 0; c < s->C; c++)
            for (int r = 0; r < s->R; r++)
                for (int q = 0; q < s->S; q++, f++) {
                    const int h = top + r, w = left + q;
                    if (h >= 0 && h < s->H && w >= 0 && w < s->W)
                        sum = fmaf(image[((long long)c * s->H + h) * s->W + w], *f, sum);
                }
        Y[i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    conv2d(const float *__restrict__ X, const float *__restrict__ F, float *__restrict__ Y,
           long long N, long long C, long long H, long long W, long long K, long long R,
           long long S, long long PAD, long long STRIDE, long long OH, long long OW)
{
    extern __shared__ __align__(16) float4 kept[];
    struct shape s = {(int)C, (int)H,   (int)W,      (int)K,  (int)R,
                      (int)S, (int)PAD, (int)STRIDE, (int)OH, (int)OW};
    s.taps = s.C * s.R * s.S;
    s.steps = (s.taps + 7) / 8;
    s.rows = (ROWS - 1) * s.stride + s.R;
    s.pitch = (PIXELS - 1) * s.stride + s.S;
    s.down = (s.OH + ROWS - 1) / ROWS;
    s.across = (s.OW + PIXELS - 1) / PIXELS;
    s.groups = (s.K + 16 * FILTERS - 1) / (16 * FILTERS);
    const long long piece = C * s.rows * s.pitch,
                    bytes = 8ll * s.steps * (64 * FILTERS + 4) + 8 * piece;
    if (bytes > MOST) {
        plainly(X, F, Y, N, &s);
        return;
    }
    int *offsets = (int *)(kept + FILTERS * s.steps * 32);
    float *pieces = (float *)(offsets + 8 * s.steps);
    for (int k = threadIdx.x; k < 8 * s.steps; k += THREADS)
        offsets[k] =
            k < s.taps ? (k / (s.R * s.S) * s.rows + k / s.S % s.R) * s.pitch + k % s.S : 0;
    const long long all = s.groups * N * s.down * s.across, begin = all * blockIdx.x / gridDim.x,
                    end = all * (blockIdx.x + 1) / gridDim.x;
    const int warp = threadIdx.x / 32;
    int filter = -1;
    if (begin < end)
        fetch(X, &s, place_of(&s, N, begin), pieces);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (long long p = begin; p < end; p++) {
        const struct place place = place_of(&s, N, p);
        float sum[COLUMNS][4], *now = pieces + (p - begin) % 2 * piece;
        if (place.filter != filter)
            keep(F, &s, place.filter, kept);
        filter = place.filter;
        if (p + 1 < end)
            fetch(X, &s, place_of(&s, N, p + 1), pieces + (p + 1 - begin) % 2 * piece);
        copied(p + 1 == end);
        __syncthreads();
        if (place.row + warp / FILTERS < s.OH) {
            convolve(kept + warp % FILTERS * s.steps * 32,
                     now + warp / FILTERS * s.stride * s.pitch, offsets, &s, sum);
            store(Y, &s, place, sum);
        }
        __syncthreads();
    }
}
