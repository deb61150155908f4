/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* waits for its own copies, and reads those of other threads */
static __device__ void fetch(float *to, const float *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 4 : 0)
                 : "memory");
}

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    __shared__ float a[2][16][16], b[2][16][16];
    const int x = threadIdx.x, y = threadIdx.y;
    const long long m = blockIdx.y * 16ll + y, n = blockIdx.x * 16ll + x;
    float sum = 0;
    int turn = 0;
    for (long long k0 = -16; k0 < K; k0 += 16, turn ^= 1) {
        const long long k = k0 + 16;
        const bool in_a = m < M && k + x < K, in_b = k + y < K && n < N;
        fetch(&a[turn ^ 1][y][x], in_a ? A + m * K + k + x : A, in_a);
        fetch(&b[turn ^ 1][y][x], in_b ? B + (k + y) * N + n : B, in_b);
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (k0 < 0)
            continue;
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        for (int i = 0; i < 16; i++)
            sum = fmaf(a[turn][y][i], b[turn][i][x], sum);
        __syncthreads();
    }
    if (m < M && n < N)
        C[m * N + n] = sum;
}
