/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* unrolled into more than the assembler can do in its time */
extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    float s[64];
    for (int i = 0; i < 64; i++)
        s[i] = A[i % K];
#pragma unroll
    for (int i = 0; i < 100000; i++)
#pragma unroll
        for (int j = 0; j < 64; j++)
            s[j] = sinf(s[(i * 7 + j) % 64]) * s[(i + j * 5) % 64] + (float)i;
    for (int i = 0; i < 64; i++)
        C[i] = s[i];
}
