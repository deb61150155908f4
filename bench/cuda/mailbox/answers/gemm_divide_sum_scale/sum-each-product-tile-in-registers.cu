/*---
tune:
  TILE_K: [16, 8]
memset: {out: 0}
launch:
  - {entry: gemm_sum, grid: "32, ceil_div(B, 128)", block: 256, args: [x, weight, out, B]}
---*/
/* The product as it stands, in tiles of 128 x 128 and 8 x 8 a thread, but never written: each tile's
 * rows are summed in registers and added to the output. */
#define N 4096
#define PAD 4

extern "C" __global__ void __launch_bounds__(256)
gemm_sum(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ out,
         long long B)
{
    __shared__ float a[TILE_K][128 + PAD], b[TILE_K][128 + PAD];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const long long row0 = (long long)blockIdx.y * 128;
    const int column0 = blockIdx.x * 128;
    float sum[8][8] = {};
    for (int k0 = 0; k0 < N; k0 += TILE_K) {
        for (int i = threadIdx.x; i < 128 * TILE_K / 4; i += 256) {
            const int r = i / (TILE_K / 4), k = i % (TILE_K / 4) * 4;
            float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
            if (row0 + r < B)
                v = *(const float4 *)(x + (row0 + r) * N + k0 + k);
            a[k][r] = v.x, a[k + 1][r] = v.y, a[k + 2][r] = v.z, a[k + 3][r] = v.w;
            v = *(const float4 *)(weight + (long long)(column0 + r) * N + k0 + k);
            b[k][r] = v.x, b[k + 1][r] = v.y, b[k + 2][r] = v.z, b[k + 3][r] = v.w;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE_K; k++) {
            float left[8], right[8];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                left[i] = a[k][ty * 4 + i % 4 + i / 4 * 64];
                right[i] = b[k][tx * 4 + i % 4 + i / 4 * 64];
            }
#pragma unroll
            for (int i = 0; i < 64; i++)
                sum[i / 8][i % 8] = fmaf(left[i / 8], right[i % 8], sum[i / 8][i % 8]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float all = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; j++)
            all += sum[i][j];
#pragma unroll
        for (int d = 8; d > 0; d /= 2)
            all += __shfl_xor_sync(~0u, all, d);
        const long long row = row0 + ty * 4 + i % 4 + i / 4 * 64;
        if (tx == 0 && row < B)
            atomicAdd(out + row, all * 0.75f);
    }
}
