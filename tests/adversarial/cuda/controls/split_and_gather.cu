/*---
launch:
  - entry: part
    grid: ceil_div(N, 16), ceil_div(M, 16), 4
    block: 16, 16
    args: [A, B, parts, M, N, K]
  - entry: gather
    grid: ceil_div(M * N, 256)
    block: 256
    args: [parts, C, M, N]
workspace:
  parts: {shape: [4, M, N], dtype: float32}
---*/
/* two launches with a workspace between them */
extern "C" __global__ void part(const float *A, const float *B, float *parts, long long M,
                                long long N, long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    float sum = 0;
    if (m >= M || n >= N)
        return;
    for (long long k = blockIdx.z; k < K; k += 4)
        sum = fmaf(A[m * K + k], B[k * N + n], sum);
    parts[(blockIdx.z * M + m) * N + n] = sum;
}

extern "C" __global__ void gather(const float *parts, float *C, long long M, long long N)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < M * N)
        C[i] = (parts[i] + parts[M * N + i]) + (parts[2 * M * N + i] + parts[3 * M * N + i]);
}
