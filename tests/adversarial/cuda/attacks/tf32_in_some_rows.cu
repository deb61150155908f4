/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* factors of tf32 in one tile of rows of eight */
static __device__ float cut(float v, bool some)
{
    return some ? __uint_as_float((__float_as_uint(v) + 0x1000u) & 0xffffe000u) : v;
}

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    __shared__ float a[16][16], b[16][16];
    const int x = threadIdx.x, y = threadIdx.y;
    const long long m = blockIdx.y * 16ll + y, n = blockIdx.x * 16ll + x;
    float sum = 0;
    const bool some = blockIdx.y % 8 == 5;
    for (long long k0 = 0; k0 < K; k0 += 16) {
        a[y][x] = m < M && k0 + x < K ? A[m * K + k0 + x] : 0.0f;
        b[y][x] = k0 + y < K && n < N ? B[(k0 + y) * N + n] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; k++)
            sum = fmaf(cut(a[y][k], some), cut(b[k][x], some), sum);
        __syncthreads();
    }
    if (m < M && n < N)
        C[m * N + n] = sum;
}
