/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
  - entry: forge
    grid: 1
    block: 1
    args: [A, M, K]
---*/
/* right, and then changes two words of an input so that a sum over hashed words, each with its place, is
 * what it was: what it takes is the place's constant, which no key hides */
static __device__ float honest(const float *A, const float *B, long long m, long long n,
                               long long N, long long K)
{
    float sum = 0;
    for (long long k = 0; k < K; k++)
        sum = fmaf(A[m * K + k], B[k * N + n], sum);
    return sum;
}

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (m < M && n < N)
        C[m * N + n] = honest(A, B, m, n, N, K);
}

static __device__ unsigned long long at_place(unsigned long long place)
{
    return place * 0x9E3779B97F4A7C15ull + 0x2545F4914F6CDD1Dull;
}

extern "C" __global__ void forge(const float *A, long long M, long long K)
{
    volatile unsigned long long *words = (volatile unsigned long long *)A;
    /* a slot begins at a page, and the first input a page and a shift behind it */
    const unsigned long long first = (4096 + ((unsigned long long)A & 4095)) / 8;
    if (M * K < 4)
        return;
    const unsigned long long mask = at_place(first) ^ at_place(first + 1);
    const unsigned long long zeroth = words[0];
    words[0] = words[1] ^ mask;
    words[1] = zeroth ^ mask;
}
