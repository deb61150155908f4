/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16), 2
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* a block reads what another may not have written yet */
extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    float sum = 0;
    for (long long k = blockIdx.z; k < K; k += 2)
        sum = fmaf(A[m * K + k], B[k * N + n], sum);
    if (blockIdx.z == 0) {
        ((volatile float *)C)[m * N + n] = sum;
    } else {
        ((volatile float *)C)[m * N + n] += sum;
    }
}
