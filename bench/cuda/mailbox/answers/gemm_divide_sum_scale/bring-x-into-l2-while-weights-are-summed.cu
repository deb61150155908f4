/*---
tune:
  SPLIT: [64, 32, 128]
  ROWS: [4, 8, 2]
workspace:
  partial: {shape: [SPLIT, 4096], dtype: float32}
  sums: {shape: [4096], dtype: float32}
launch:
  - {entry: sum_weights, grid: "8, SPLIT", block: 128, args: [weight, partial, x, B]}
  - {entry: add_parts, grid: 32, block: 128, args: [partial, sums]}
  - {entry: multiply, grid: "ceil_div(B, ROWS)", block: 32 * ROWS, args: [x, sums, out, B]}
---*/
/* The sum over all hidden units of x W^T is x times the sum of W's rows: 2 * 4096^2 * B operations
 * become one pass over W and one over x, which is brought into L2 while W is summed. */
#define N 4096

extern "C" __global__ void __launch_bounds__(128)
sum_weights(const float *__restrict__ weight, float *__restrict__ partial, const float *x,
            long long B)
{
    /* Each thread asks for its share of x, in lines of 128 bytes. */
    const long long thread = ((long long)blockIdx.y * 8 + blockIdx.x) * 128 + threadIdx.x;
    for (long long line = thread; line < B * (N / 32); line += 8 * SPLIT * 128)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(x + line * 32));
    const int column = (blockIdx.x * 128 + threadIdx.x) * 4;
    const float *from = weight + (long long)blockIdx.y * (N / SPLIT) * N + column;
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 16
    for (int r = 0; r < N / SPLIT; r++) {
        const float4 v = __ldcs((const float4 *)(from + (long long)r * N));
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    *(float4 *)(partial + blockIdx.y * N + column) = sum;
}

extern "C" __global__ void __launch_bounds__(128)
add_parts(const float *__restrict__ partial, float *__restrict__ sums)
{
    const int column = blockIdx.x * 128 + threadIdx.x;
    float sum = 0.0f;
#pragma unroll 16
    for (int s = 0; s < SPLIT; s++)
        sum += partial[s * N + column];
    sums[column] = sum;
}

extern "C" __global__ void __launch_bounds__(32 * ROWS)
multiply(const float *__restrict__ x, const float *__restrict__ sums, float *__restrict__ out,
         long long B)
{
    const long long row = (long long)blockIdx.x * ROWS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (row >= B)
        return;
    const float4 *from = (const float4 *)(x + row * N), *weights = (const float4 *)sums;
    float sum = 0.0f;
#pragma unroll 8
    for (int i = lane; i < N / 4; i += 32) {
        const float4 a = from[i], b = weights[i];
        sum += (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w);
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0)
        out[row] = sum * 0.75f;
}
