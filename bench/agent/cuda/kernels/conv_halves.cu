/*---
tune:
  TILES: [1, 2]
  THREADS: [256, 384, 512]
  BLOCKS: [2, 1]
  where: TILES * THREADS * BLOCKS <= 768
launch:
  - entry: conv_halves
    grid: min(B * 63, BLOCKS * sm_count)
    block: THREADS
    shared: 102976
    args: [x, bias, conv_weight, conv_bias, out, B]
---*/
/* The convolution by the matrix units, as five products of weights [64, 16] with pixels [16, n]: eight channels at two
 * places of the kernel. The pixels are read from one copy in shared memory, moved. Each factor is two float16 numbers,
 * after a power of two has brought the largest below 2^15: its rounded half and what is left, 22 bits and as much below
 * the largest as float32 has; three products of halves keep float32's accuracy. A warp keeps its weights in registers.
 * tanh rises and the factor is positive: so the maximum comes first, and tanh once for sixteen. A block has a row of
 * windows at a time, and the next one's pixels are on their way meanwhile. */
#define PITCH 268
#define PLANE (6 * PITCH) /* 8 more than a multiple of 32: no conflicts */
#define IMAGE (8 * PLANE)
#define GROUPS (4 / TILES)            /* of channels */
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

static __device__ __forceinline__ void product(float c[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                               unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
        " {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* Two float16 in a word, the first one below. */
static __device__ __forceinline__ unsigned packed(float first, float second)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

static __device__ __forceinline__ float2 unpacked(unsigned both)
{
    float2 v;
    asm("{\n.reg .f16 first, second;\n"
        "mov.b32 {first, second}, %2;\n"
        "cvt.f32.f16 %0, first;\n"
        "cvt.f32.f16 %1, second;\n}"
        : "=f"(v.x), "=f"(v.y)
        : "r"(both));
    return v;
}
/* ---- end ---- */

static __device__ __forceinline__ void split(float first, float second, unsigned &high, unsigned &low)
{
    high = packed(first, second);
    const float2 half = unpacked(high);
    low = packed(first - half.x, second - half.y);
}

/* The exponent of the block's largest number, as float32 has it, where the power of two that it asks for is a number. */
static __device__ __forceinline__ int exponent_of_block(float most, float *part)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (lane == 0)
        part[threadIdx.x / 32] = most;
    __syncthreads();
    most = lane < THREADS / 32 ? part[lane] : 0.0f;
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    return max(27, (int)(__float_as_uint(most) >> 23));
}

static __device__ __forceinline__ float scale_of(int exponent)
{
    return __uint_as_float((unsigned)(268 - exponent) << 23); /* brings the largest to 2^14 and more */
}

static __device__ __forceinline__ float back_of(int exponent)
{
    return __uint_as_float((unsigned)(exponent - 14) << 23);
}

static __device__ __forceinline__ void bring(float *image, const float *x, int unit)
{
    const float *from = x + (long long)(unit / 63) * 8 * 65536 + (unit % 63) * 4 * 256;
#pragma unroll
    for (int i = 0; i < 3072 / THREADS; i++) {
        const int at = threadIdx.x + i * THREADS, row = at / 64, column = at % 64 * 4;
        copy16(image + row / 6 * PLANE + row % 6 * PITCH + column, from + row / 6 * 65536 + row % 6 * 256 + column);
    }
}

/* The image as words of two channels: four planes of halves, four of what is left. The exponent of its largest number. */
static __device__ __forceinline__ int halve(const float *image, unsigned *halves, float *part)
{
    float most = 0.0f;
#pragma unroll 4
    for (int i = 0; i < 3072 / THREADS; i++) {
        const int at = threadIdx.x + i * THREADS, row = at / 64, column = at % 64 * 4;
        const float4 v = *(const float4 *)(image + row / 6 * PLANE + row % 6 * PITCH + column);
        most = fmaxf(fmaxf(most, fmaxf(fabsf(v.x), fabsf(v.y))), fmaxf(fabsf(v.z), fabsf(v.w)));
    }
    const int exponent = exponent_of_block(most, part);
    const float scale = scale_of(exponent);
#pragma unroll 4
    for (int i = 0; i < 6144 / THREADS; i++) {
        const int at = threadIdx.x + i * THREADS, pair = at / 1536, place = at % 1536 / 256 * PITCH + at % 256;
        unsigned high, low;
        split(image[2 * pair * PLANE + place] * scale, image[(2 * pair + 1) * PLANE + place] * scale, high, low);
        halves[pair * PLANE + place] = high;
        halves[(4 + pair) * PLANE + place] = low;
    }
    return exponent;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
conv_halves(const float *__restrict__ x, const float *__restrict__ bias, const float *__restrict__ conv_weight,
            const float *__restrict__ conv_bias, float *__restrict__ out, long long B)
{
    extern __shared__ __align__(128) float image[];
    unsigned *halves = (unsigned *)(image + IMAGE);
    float *part = image + 2 * IMAGE;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int channel = warp % GROUPS * TILES * 16, span = warp / GROUPS;
    bring(image, x, blockIdx.x);
    float most = 0.0f;
    for (int i = threadIdx.x; i < 64 * 72; i += THREADS)
        most = fmaxf(most, fabsf(conv_weight[i]));
    const int exponent = exponent_of_block(most, part);
    const float scale = scale_of(exponent), back = back_of(exponent);
    unsigned high[TILES][10][2], low[TILES][10][2]; /* the tenth place has no weights */
#pragma unroll
    for (int m = 0; m < TILES; m++) {
#pragma unroll
        for (int tap = 0; tap < 9; tap++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float *w = conv_weight + ((channel + m * 16 + g + i * 8) * 8 + 2 * t) * 9 + tap;
                split(w[0] * scale, w[9] * scale, high[m][tap][i], low[m][tap][i]);
            }
        high[m][9][0] = high[m][9][1] = low[m][9][0] = low[m][9][1] = 0;
    }
    if (threadIdx.x < 48) /* columns behind the image, which windows that nobody asked for look at */
        for (int i = 256; i < PITCH; i++)
            halves[threadIdx.x * PITCH + i] = 0;
    const int units = (int)B * 63;
    for (int unit = blockIdx.x; unit < units; unit += gridDim.x) {
        copies_end();
        __syncthreads();
        const float down = back_of(halve(image, halves, part));
        __syncthreads();
        if (unit + gridDim.x < units)
            bring(image, x, unit + gridDim.x);
        float *to = out + (long long)(unit / 63) * 64 * 63 * 63 + (channel + g + t % 2 * 8) * 63 * 63 + unit % 63 * 63;
#pragma unroll 1
        for (int n = span; n < 32; n += SPANS) {
            const unsigned *from = halves + t * PLANE + g + n * 8;
            float sum[4][TILES][4] = {};
#pragma unroll
            for (int half = 1; half >= 0; half--) { /* what is left of the pixels, with halves of weights alone, comes first */
                unsigned pixel[19];
#pragma unroll
                for (int i = 0; i < 18; i++)
                    pixel[i] = from[half * 4 * PLANE + i / 3 * PITCH + i % 3];
                pixel[18] = 0;
#pragma unroll
                for (int tap = 0; tap < 10; tap += 2)
#pragma unroll
                    for (int which = half; which < 2; which++)
#pragma unroll
                        for (int r = 0; r < 4; r++)
#pragma unroll
                            for (int m = 0; m < TILES; m++) {
                                const unsigned(*w)[2] = which == 0 ? low[m] + tap : high[m] + tap;
                                product(sum[r][m], w[0][0], w[0][1], w[1][0], w[1][1], pixel[3 * r + tap],
                                        pixel[tap == 8 ? 18 : 3 * r + tap + 1]);
                            }
            }
            const int column = 2 * n + t / 2;
#pragma unroll
            for (int m = 0; m < TILES; m++) {
                float best[2];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    best[i] = fmaxf(sum[0][m][2 * i], sum[0][m][2 * i + 1]);
#pragma unroll
                    for (int r = 1; r < 4; r++)
                        best[i] = fmaxf(best[i], fmaxf(sum[r][m][2 * i], sum[r][m][2 * i + 1]));
                    best[i] = fmaxf(best[i], __shfl_xor_sync(~0u, best[i], 1));
                }
                const int mine = channel + m * 16 + g + t % 2 * 8;
                if (column < 63)
                    to[m * 16 * 63 * 63 + column] =
                        tanhf((t % 2 ? best[1] : best[0]) * back * down + __ldg(conv_bias + mine)) * 2.0f + __ldg(bias + mine);
            }
        }
    }
}
