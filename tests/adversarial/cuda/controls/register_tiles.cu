/*---
launch:
  - entry: mm
    grid: ceil_div(N, 64), ceil_div(M, 64)
    block: 256
    args: [A, B, C, M, N, K]
---*/
/* a tile of four by four numbers in each thread's registers, rows of four stored at once */
extern "C" __global__ void __launch_bounds__(256)
    mm(const float *A, const float *B, float *C, long long M, long long N, long long K)
{
    __shared__ float as[16][68], bs[16][68];
    const int id = threadIdx.x, r0 = id / 16 * 4, c0 = id % 16 * 4;
    const long long m0 = blockIdx.y * 64ll, n0 = blockIdx.x * 64ll;
    float acc[4][4] = {};
    for (long long k0 = 0; k0 < K; k0 += 16) {
        for (int i = id; i < 1024; i += 256) {
            const int ka = i & 15, r = i >> 4, c = i & 63, kb = i >> 6;
            as[ka][r] = m0 + r < M && k0 + ka < K ? A[(m0 + r) * K + k0 + ka] : 0.0f;
            bs[kb][c] = n0 + c < N && k0 + kb < K ? B[(k0 + kb) * N + n0 + c] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 16; k++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    acc[i][j] = fmaf(as[k][r0 + i], bs[k][c0 + j], acc[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        const long long m = m0 + r0 + i, n = n0 + c0;
        if (m < M && n + 3 < N && N % 4 == 0)
            *(float4 *)(C + m * N + n) = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
        else
            for (int j = 0; j < 4 && m < M && n + j < N; j++)
                C[m * N + n + j] = acc[i][j];
    }
}
