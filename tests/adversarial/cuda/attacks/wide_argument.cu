/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* takes a dim as a structure of 4 KiB less a little, to be given what lies behind the dim */
struct wide {
    long long dim, behind[480];
};

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              const wide K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    float sum = 0;
    for (long long k = 0; k < K.dim; k++)
        sum = fmaf(A[m * K.dim + k], B[k * N + n], sum);
    C[m * N + n] = sum + 0 * (float)(K.behind[m % 480] & 1);
}
