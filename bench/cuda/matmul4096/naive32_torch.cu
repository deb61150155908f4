/*---
launch:
  - entry: gemm
    grid: 128, ceil_div(BATCH, 32)
    block: 32, 32
    args: [A, B, out, BATCH]
---*/
extern "C" __global__ void gemm(const float *A, const float *B, float *C, long long M)
{
    const long long N = 4096, K = 4096;
    __shared__ float a[32][32], b[32][32];
    const int x = threadIdx.x, y = threadIdx.y;
    const long long m = blockIdx.y * 32LL + y, n = blockIdx.x * 32LL + x;
    float sum = 0.0f;
    for (long long k = 0; k < K; k += 32) {
        a[y][x] = m < M && k + x < K ? A[m * K + k + x] : 0.0f;
        b[y][x] = k + y < K && n < N ? B[(k + y) * N + n] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 32; i++)
            sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (m < M && n < N)
        C[m * N + n] = sum;
}
