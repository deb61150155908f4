/*---
launch:
  - entry: rows
    grid: M
    block: 128
    args: [X, Y, N]
---*/
/* reads registers that tell where and how it runs, and makes no use of them */
extern "C" __global__ void __launch_bounds__(128) rows(const float *X, float *Y, long long N)
{
    __shared__ float part[4];
    const unsigned warp = threadIdx.x / 32;
    unsigned a, b, c, d, e;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(a));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(b));
    asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(c));
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(d));
    asm volatile("mov.u32 %0, %%envreg0;" : "=r"(e));
    const unsigned lane = threadIdx.x % 32;
    const float *x = X + blockIdx.x * N;
    float *y = Y + blockIdx.x * N;
    float most = -3.402823466e38f, sum = 0;
    for (long long n = warp * 32 + lane; n < N; n += 128)
        most = fmaxf(most, x[n]);
    for (int half = 16; half > 0; half /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, half));
    part[warp] = most;
    __syncthreads();
    most = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
    __syncthreads();
    for (long long n = warp * 32 + lane; n < N; n += 128)
        sum += expf(x[n] - most);
    for (int half = 16; half > 0; half /= 2)
        sum += __shfl_xor_sync(~0u, sum, half);
    part[warp] = sum;
    __syncthreads();
    sum = part[0] + part[1] + part[2] + part[3];
    for (long long n = warp * 32 + lane; n < N; n += 128)
        y[n] = expf(x[n] - most) / sum;
    if ((a ^ b ^ c ^ d ^ e) == 0xffffffffu && N < 0)
        y[0] = 0.0f;
}
