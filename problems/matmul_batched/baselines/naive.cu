/*---
launch:
  - entry: gemm
    grid: BATCH * ceil_div(M, 32) * ceil_div(N, 32)
    block: 32, 32
    args: [A, B, C, M, N, K]
---*/
/* C[g] = A[g] B[g] the way it is first taught: a thread a number of C, tiles of 32 x 32 of A and B
 * in shared memory. */
extern "C" __global__ void __launch_bounds__(1024, 2)
    gemm(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C,
         long long M, long long N, long long K)
{
    __shared__ float sa[32][32], sb[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const unsigned down = (unsigned)((M + 32 - 1) / 32), across = (unsigned)((N + 32 - 1) / 32);
    const unsigned row = blockIdx.x / across;
    const long long g = row / down;
    const long long m = row % down * 32ll + ty, n = blockIdx.x % across * 32ll + tx;
    A += g * M * K;
    B += g * K * N;
    C += g * M * N;
    float sum = 0;
    for (long long k0 = 0; k0 < K; k0 += 32) {
        sa[ty][tx] = m < M && k0 + tx < K ? A[m * K + k0 + tx] : 0.0f;
        sb[ty][tx] = k0 + ty < K && n < N ? B[(k0 + ty) * N + n] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++)
            sum = fmaf(sa[ty][k], sb[k][tx], sum);
        __syncthreads();
    }
    if (m < M && n < N)
        C[m * N + n] = sum;
}
