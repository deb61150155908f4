/*---
launch:
  - entry: reference
    grid: ceil_div(N, 32), ceil_div(M, 32)
    block: 32, 32
    args: [A, B, bias, C, M, N, K]
---*/
/* The definition in float64, for shapes at which numpy takes its time. */
extern "C" __global__ void __launch_bounds__(1024)
    reference(const double *A, const double *B, const double *bias, double *C, long long M,
              long long N, long long K)
{
    __shared__ double sa[32][32], sb[32][33];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const long long m = blockIdx.y * 32ll + ty, n = blockIdx.x * 32ll + tx;
    double sum = 0;
    for (long long k0 = 0; k0 < K; k0 += 32) {
        sa[ty][tx] = m < M && k0 + tx < K ? A[m * K + k0 + tx] : 0.0;
        sb[ty][tx] = k0 + ty < K && n < N ? B[(k0 + ty) * N + n] : 0.0;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++)
            sum = fma(sa[ty][k], sb[k][tx], sum);
        __syncthreads();
    }
    if (m < M && n < N) {
        sum += bias[n];
        C[m * N + n] = sum / 2 * (1 + erf(sum / sqrt(2.0)));
    }
}
