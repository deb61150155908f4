/*---
tune:
  CHANNELS: [4, 2]
  GROUPS: [2, 4, 1]
  where: 64 % (CHANNELS * GROUPS) == 0
launch:
  - {entry: conv_tanh_max, grid: "4, 8, B", block: 128 * GROUPS, shared: 4 * (8*34*68 + 64*72),
     args: [x, conv_weight, conv_bias, bias, out]}
---*/
/* Nothing but the pooled result is written. A block has 16 x 8 pooled outputs of all 64 channels; its
 * input and all weights lie in shared memory. A thread computes the 4 x 4 sums behind one pooled
 * output for CHANNELS channels at once, out of a 6 x 6 patch of each input channel. */
#define STRIDE 68
#define ROWS 34
#define IN 256
#define POOLED 63

extern "C" __global__ void __launch_bounds__(128 * GROUPS)
conv_tanh_max(const float *__restrict__ x, const float *__restrict__ weight,
              const float *__restrict__ conv_bias, const float *__restrict__ bias,
              float *__restrict__ out)
{
    extern __shared__ float input[];
    float *weights = input + 8 * ROWS * STRIDE; /* [64 / CHANNELS][72][CHANNELS] */
    const int left = blockIdx.x * 64, top = blockIdx.y * 32;
    const float *image = x + (long long)blockIdx.z * 8 * IN * IN;
    for (int i = threadIdx.x; i < 8 * ROWS * (STRIDE / 4); i += 128 * GROUPS) {
        const int c = i / (ROWS * (STRIDE / 4)), rest = i % (ROWS * (STRIDE / 4));
        const int r = rest / (STRIDE / 4), k = rest % (STRIDE / 4) * 4;
        float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
        if (top + r < IN && left + k < IN)
            v = *(const float4 *)(image + (c * IN + top + r) * IN + left + k);
        *(float4 *)(input + (c * ROWS + r) * STRIDE + k) = v;
    }
    for (int i = threadIdx.x; i < 64 * 72; i += 128 * GROUPS) {
        const int channel = i / 72, tap = i % 72;
        weights[(channel / CHANNELS * 72 + tap) * CHANNELS + channel % CHANNELS] = weight[i];
    }
    __syncthreads();
    const int place = threadIdx.x % 128, column = place % 16, row = place / 16;
    const int pooled_x = blockIdx.x * 16 + column, pooled_y = blockIdx.y * 8 + row;
    if (pooled_x >= POOLED || pooled_y >= POOLED)
        return;
    for (int group = threadIdx.x / 128; group < 64 / CHANNELS; group += GROUPS) {
        float sum[CHANNELS][4][4] = {};
#pragma unroll 1
        for (int c = 0; c < 8; c++) {
            float patch[6][6];
            const float *from = input + (c * ROWS + 4 * row) * STRIDE + 4 * column;
#pragma unroll
            for (int r = 0; r < 6; r++) {
                const float4 a = *(const float4 *)(from + r * STRIDE);
                const float2 b = *(const float2 *)(from + r * STRIDE + 4);
                patch[r][0] = a.x, patch[r][1] = a.y, patch[r][2] = a.z, patch[r][3] = a.w;
                patch[r][4] = b.x, patch[r][5] = b.y;
            }
            const float *taps = weights + (group * 72 + c * 9) * CHANNELS;
#pragma unroll
            for (int tap = 0; tap < 9; tap++)
#pragma unroll
                for (int k = 0; k < CHANNELS; k++) {
                    const float w = taps[tap * CHANNELS + k];
#pragma unroll
                    for (int i = 0; i < 16; i++)
                        sum[k][i / 4][i % 4] =
                            fmaf(w, patch[i / 4 + tap / 3][i % 4 + tap % 3], sum[k][i / 4][i % 4]);
                }
        }
#pragma unroll
        for (int k = 0; k < CHANNELS; k++) {
            const int channel = group * CHANNELS + k;
            const float add = conv_bias[channel];
            float most = -INFINITY;
#pragma unroll
            for (int i = 0; i < 16; i++)
                most = fmaxf(most, tanhf(sum[k][i / 4][i % 4] + add) * 2.0f + bias[channel]);
            out[(((long long)blockIdx.z * 64 + channel) * POOLED + pooled_y) * POOLED + pooled_x] =
                most;
        }
    }
}
