/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* every thread prints without end */
extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    for (int i = 0; i < 1000; i++)
        printf("%lld %lld %d: as much as fits a line and then some, again and again and again\n", m,
               n, i);
    C[m * N + n] = 0;
}
