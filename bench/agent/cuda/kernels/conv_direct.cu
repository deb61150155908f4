/*---
tune:
  CHANNELS: [4, 8, 2]
  BLOCKS: [2, 1, 3]
launch:
  - entry: conv_direct
    grid: 63, B
    block: 256
    shared: 71808
    args: [x, bias, conv_weight, conv_bias, out]
---*/
/* The convolution by multiply-adds: a thread has a window of 4 x 4 outputs in registers, for CHANNELS channels at a time,
 * with the pixels that they share. tanh rises and the factor is positive: so the maximum comes first. */
#define THREADS 256
#define PITCH 272
#define PLANE (6 * PITCH)
#define WIDE 68 /* of 64 weights */

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
conv_direct(const float *__restrict__ x, const float *__restrict__ bias, const float *__restrict__ conv_weight,
            const float *__restrict__ conv_bias, float *__restrict__ out)
{
    extern __shared__ __align__(128) float image[];
    float *weights = image + 8 * PLANE; /* [8, 9, 64]: a thread's channels lie together */
    const float *from = x + (long long)blockIdx.y * 8 * 65536 + blockIdx.x * 4 * 256;
#pragma unroll
    for (int i = 0; i < 12; i++) {
        const int at = threadIdx.x + i * THREADS, row = at / 64, column = at % 64 * 4;
        *(float4 *)(image + row / 6 * PLANE + row % 6 * PITCH + column) =
            *(const float4 *)(from + row / 6 * 65536 + row % 6 * 256 + column);
    }
    if (threadIdx.x < 48)
        for (int i = 256; i < PITCH; i++)
            image[threadIdx.x * PITCH + i] = 0.0f;
    for (int i = threadIdx.x; i < 64 * 72; i += THREADS)
        weights[i % 72 * WIDE + i / 72] = conv_weight[i];
    __syncthreads();
    const int column = threadIdx.x % 64;
#pragma unroll 1
    for (int channel = threadIdx.x / 64 * CHANNELS; channel < 64; channel += 4 * CHANNELS) {
        float sum[CHANNELS][4][4] = {};
#pragma unroll 1
        for (int k = 0; k < 8; k++) {
            float v[6][6];
#pragma unroll
            for (int y = 0; y < 6; y++) {
                const float *row = image + k * PLANE + y * PITCH + 4 * column;
                const float4 left = *(const float4 *)row;
                const float2 right = *(const float2 *)(row + 4);
                v[y][0] = left.x, v[y][1] = left.y, v[y][2] = left.z, v[y][3] = left.w;
                v[y][4] = right.x, v[y][5] = right.y;
            }
#pragma unroll
            for (int tap = 0; tap < 9; tap++) {
                float w[CHANNELS];
#pragma unroll
                for (int c = 0; c < CHANNELS; c += 2) {
                    const float2 two = *(const float2 *)(weights + (k * 9 + tap) * WIDE + channel + c);
                    w[c] = two.x, w[c + 1] = two.y;
                }
#pragma unroll
                for (int c = 0; c < CHANNELS; c++)
#pragma unroll
                    for (int y = 0; y < 4; y++)
#pragma unroll
                        for (int z = 0; z < 4; z++)
                            sum[c][y][z] = fmaf(v[y + tap / 3][z + tap % 3], w[c], sum[c][y][z]);
            }
        }
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            float most = sum[c][0][0];
#pragma unroll
            for (int i = 1; i < 16; i++)
                most = fmaxf(most, sum[c][i / 4][i % 4]);
            if (column < 63)
                out[(((long long)blockIdx.y * 64 + channel + c) * 63 + blockIdx.x) * 63 + column] =
                    tanhf(most + conv_bias[channel + c]) * 2.0f + bias[channel + c];
        }
    }
}
