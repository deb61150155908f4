/*---
tune:
  TILES: [2, 1]
  THREADS: [256, 384]
  where: TILES * THREADS <= 512
launch:
  - entry: conv_tensor
    grid: min(B * 63, sm_count)
    block: THREADS
    shared: 102912
    args: [x, bias, conv_weight, conv_bias, out, B]
---*/
/* The convolution by the matrix units, as nine products of weights [64, 8] with pixels [8, n], one for each place of the
 * kernel: the pixels are read from one copy in shared memory, moved. Each factor is two tf32 numbers, its rounded half
 * and what is left; three products of halves keep float32's accuracy. A warp keeps its weights in registers. tanh rises
 * and the factor is positive: so the maximum comes first, and tanh once for sixteen. A block has a row of windows at a
 * time, and the next one's pixels are on their way meanwhile. */
#define PITCH 268
#define PLANE (6 * PITCH) /* 8 more than a multiple of 32: no conflicts */
#define IMAGE (8 * PLANE)
#define GROUPS (4 / TILES) /* of channels */
#define SPANS (THREADS / 32 / GROUPS) /* of pixels */

/* ---- the hardware's own ---- */
static __device__ __forceinline__ void copy16(float *to, const float *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}

static __device__ __forceinline__ void copies_end()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

static __device__ __forceinline__ void product(float c[4], const unsigned a[4], const unsigned b[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
        " {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/* ---- end ---- */

static __device__ __forceinline__ unsigned rounded(float v)
{
    return (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
}

static __device__ __forceinline__ void split(float v, unsigned &high, unsigned &low)
{
    high = rounded(v);
    low = rounded(v - __uint_as_float(high));
}

static __device__ __forceinline__ void bring(float *image, const float *x, long long unit)
{
    const float *from = x + (unit / 63) * 8 * 65536 + (unit % 63) * 4 * 256;
#pragma unroll
    for (int i = 0; i < 3072 / THREADS; i++) {
        const int at = threadIdx.x + i * THREADS, row = at / 64, column = at % 64 * 4;
        copy16(image + row / 6 * PLANE + row % 6 * PITCH + column, from + row / 6 * 65536 + row % 6 * 256 + column);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
conv_tensor(const float *__restrict__ x, const float *__restrict__ bias, const float *__restrict__ conv_weight,
            const float *__restrict__ conv_bias, float *__restrict__ out, long long B)
{
    extern __shared__ __align__(128) float images[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int channel = warp % GROUPS * TILES * 16, span = warp / GROUPS;
    unsigned high[TILES][9][4], low[TILES][9][4];
    float shift[TILES], add[TILES];
#pragma unroll
    for (int m = 0; m < TILES; m++) {
#pragma unroll
        for (int tap = 0; tap < 9; tap++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                split(conv_weight[((channel + m * 16 + g + i % 2 * 8) * 8 + t + i / 2 * 4) * 9 + tap], high[m][tap][i],
                      low[m][tap][i]);
        const int mine = channel + m * 16 + g + t % 2 * 8;
        shift[m] = conv_bias[mine];
        add[m] = bias[mine];
    }
    if (threadIdx.x < 2 * 48) /* columns behind the image, which windows that nobody asked for look at */
        for (int i = 256; i < PITCH; i++)
            images[threadIdx.x * PITCH + i] = 0.0f;
    const long long units = B * 63;
    bring(images, x, blockIdx.x);
    int turn = 0;
    for (long long unit = blockIdx.x; unit < units; unit += gridDim.x, turn ^= 1) {
        copies_end();
        __syncthreads();
        if (unit + gridDim.x < units)
            bring(images + (turn ^ 1) * IMAGE, x, unit + gridDim.x);
        const float *image = images + turn * IMAGE + t * PLANE + g;
        float *to = out + (unit / 63) * 64 * 63 * 63 + (channel + g + t % 2 * 8) * 63 * 63 + (unit % 63) * 63;
#pragma unroll 1
        for (int n = span; n < 32; n += SPANS) {
            float sum[4][TILES][4] = {};
#pragma unroll
            for (int y = 0; y < 6; y++)
#pragma unroll
                for (int dx = 0; dx < 3; dx++) {
                    unsigned pixel[2], rest[2];
                    split(image[y * PITCH + n * 8 + dx], pixel[0], rest[0]);
                    split(image[4 * PLANE + y * PITCH + n * 8 + dx], pixel[1], rest[1]);
#pragma unroll
                    for (int part = 0; part < 3; part++)
#pragma unroll
                        for (int r = 0; r < 4; r++)
#pragma unroll
                            for (int m = 0; m < TILES; m++)
                                if (y - r >= 0 && y - r < 3)
                                    product(sum[r][m], part == 1 ? low[m][(y - r) * 3 + dx] : high[m][(y - r) * 3 + dx],
                                            part == 0 ? rest : pixel);
                }
            const int column = 2 * n + t / 2;
#pragma unroll
            for (int m = 0; m < TILES; m++) {
                float most[2];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    most[i] = fmaxf(sum[0][m][2 * i], sum[0][m][2 * i + 1]);
#pragma unroll
                    for (int r = 1; r < 4; r++)
                        most[i] = fmaxf(most[i], fmaxf(sum[r][m][2 * i], sum[r][m][2 * i + 1]));
                    most[i] = fmaxf(most[i], __shfl_xor_sync(~0u, most[i], 1));
                }
                if (column < 63)
                    to[m * 16 * 63 * 63 + column] = tanhf((t % 2 ? most[1] : most[0]) + shift[m]) * 2.0f + add[m];
            }
        }
    }
}
