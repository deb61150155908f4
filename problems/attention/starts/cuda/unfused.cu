/*---
launch:
  - entry: scores_of
    grid: ceil_div(L, 64) * ceil_div(L, 64) * H
    block: 256
    args: [Q, K, weights, H, L, D]
  - entry: softmax
    grid: ceil_div(H * L, WARPS)
    block: 32 * WARPS
    args: [weights, H, L, D]
  - entry: mix
    grid: ceil_div(L, 64) * ceil_div(D, 64) * H
    block: 256
    args: [weights, V, O, H, L, D]
workspace:
  weights: {shape: [H, L, L], dtype: float32}
tune:
  WARPS: [8, 4, 16]
  DEPTH: [16, 8, 32]
---*/
/* Three launches with the scores in memory between them: a product, a softmax of each row in place,
 * another product. For sequences so short that the scores stay in L2. Products are made in tiles of
 * 64 x 64, 4 x 4 numbers a thread. */
template <bool TURNED>
static __device__ __forceinline__ void product(const float *A, const float *B, float *C,
                                               long long M, long long N, long long K, long long m0,
                                               long long n0)
{
    __shared__ __align__(16) float sa[DEPTH][68], sb[DEPTH][68];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float acc[4][4] = {};
    for (long long k0 = 0; k0 < K; k0 += DEPTH) {
#pragma unroll
        for (int i = threadIdx.x; i < 64 * DEPTH; i += 256) {
            const int am = i / DEPTH, ak = i % DEPTH, bn = TURNED ? am : i % 64,
                      bk = TURNED ? ak : i / 64;
            sa[ak][am] = m0 + am < M && k0 + ak < K ? A[(m0 + am) * K + k0 + ak] : 0.0f;
            const long long from = TURNED ? (n0 + bn) * K + k0 + bk : (k0 + bk) * N + n0 + bn;
            sb[bk][bn] = n0 + bn < N && k0 + bk < K ? B[from] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float a[4], b[4];
            *(float4 *)a = *(const float4 *)&sa[k][4 * ty];
            *(float4 *)b = *(const float4 *)&sb[k][4 * tx];
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (m0 + 4 * ty + i < M && n0 + 4 * tx + j < N)
                C[(m0 + 4 * ty + i) * N + n0 + 4 * tx + j] = acc[i][j];
}

extern "C" __global__ void __launch_bounds__(256, 4)
    scores_of(const float *__restrict__ Q, const float *__restrict__ K, float *__restrict__ weights,
              long long H, long long L, long long D)
{
    const unsigned tiles = (unsigned)((L + 63) / 64);
    const long long h = blockIdx.x / tiles / tiles;
    product<true>(Q + h * L * D, K + h * L * D, weights + h * L * L, L, L, D,
                  blockIdx.x / tiles % tiles * 64ll, blockIdx.x % tiles * 64ll);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)
    softmax(float *__restrict__ weights, long long H, long long L, long long D)
{
    const long long row = blockIdx.x * (long long)WARPS + threadIdx.x / 32;
    if (row >= H * L)
        return;
    const float scale = 1.44269504f / sqrtf((float)D);
    float *w = weights + row * L, most = -3.402823466e38f, sum = 0;
    for (long long i = threadIdx.x % 32; i < L; i += 32)
        most = fmaxf(most, w[i]);
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    for (long long i = threadIdx.x % 32; i < L; i += 32) {
        const float e = exp2f((w[i] - most) * scale);
        sum += e;
        w[i] = e;
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    const float over = 1.0f / sum;
    for (long long i = threadIdx.x % 32; i < L; i += 32)
        w[i] *= over;
}

extern "C" __global__ void __launch_bounds__(256, 4)
    mix(const float *__restrict__ weights, const float *__restrict__ V, float *__restrict__ O,
        long long H, long long L, long long D)
{
    const unsigned across = (unsigned)((D + 63) / 64), down = (unsigned)((L + 63) / 64);
    const long long h = blockIdx.x / across / down;
    product<false>(weights + h * L * L, V + h * L * D, O + h * L * D, L, D, L,
                   blockIdx.x / across % down * 64ll, blockIdx.x % across * 64ll);
}
