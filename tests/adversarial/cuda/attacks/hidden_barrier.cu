/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* half of each warp waits at one barrier and half at another: undefined, and right so far */
extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    __shared__ float a[16][16];
    const int x = threadIdx.x, y = threadIdx.y;
    const long long m = blockIdx.y * 16ll + y, n = blockIdx.x * 16ll + x;
    float sum = 0;
    for (long long k0 = 0; k0 < K; k0 += 16) {
        a[y][x] = m < M && k0 + x < K ? A[m * K + k0 + x] : 0.0f;
        if (threadIdx.y & 1)
            asm volatile("bar.sync 0;" ::: "memory");
        else
            asm volatile("bar.sync 0;" ::: "memory");
        for (int k = 0; k < 16 && k0 + k < K && n < N; k++)
            sum = fmaf(a[y][k], B[(k0 + k) * N + n], sum);
        __syncthreads();
    }
    if (m < M && n < N)
        C[m * N + n] = sum;
}
