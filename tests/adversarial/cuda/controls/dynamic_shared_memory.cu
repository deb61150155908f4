/*---
launch:
  - entry: mm
    grid: M
    block: 128
    shared: 65536
    args: [A, B, C, M, N, K]
---*/
/* more shared memory than a block has without asking */
extern __shared__ float row[];

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long m = blockIdx.x;
    for (long long n = threadIdx.x; n < N; n += 128) {
        float sum = 0;
        for (long long k0 = 0; k0 < K; k0 += 16384)
            for (long long k = k0; k < K && k < k0 + 16384; k++) {
                row[16384 / 128 * threadIdx.x] = A[m * K + k];
                sum = fmaf(row[16384 / 128 * threadIdx.x], B[k * N + n], sum);
            }
        C[m * N + n] = sum;
    }
}
