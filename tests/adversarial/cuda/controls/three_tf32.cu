/*---
launch:
  - entry: mm
    grid: ceil_div(N, 8), ceil_div(M, 16)
    block: 32
    args: [A, B, C, M, N, K]
---*/
/* the tensor cores, with each number in two parts: float32 from three tf32 products */
struct parts {
    unsigned high, low;
};

static __device__ struct parts split(const float *from, bool in)
{
    struct parts p;
    const float x = in ? *from : 0.0f;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(p.high) : "f"(x));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(p.low) : "f"(x - __uint_as_float(p.high)));
    return p;
}

static __device__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                unsigned b0, unsigned b1)
{
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    const long long g = threadIdx.x / 4, t = threadIdx.x % 4, m = blockIdx.y * 16ll + g,
                    n = blockIdx.x * 8ll;
    float sum[4] = {};
    for (long long k = t; k < K + t; k += 8) {
        float d[4] = {}; /* short sums in the tensor core, which truncates; long ones outside */
        const struct parts a[4] = {split(A + m * K + k, m < M && k < K),
                                   split(A + (m + 8) * K + k, m + 8 < M && k < K),
                                   split(A + m * K + k + 4, m < M && k + 4 < K),
                                   split(A + (m + 8) * K + k + 4, m + 8 < M && k + 4 < K)};
        const struct parts b[2] = {split(B + k * N + n + g, n + g < N && k < K),
                                   split(B + (k + 4) * N + n + g, n + g < N && k + 4 < K)};
        multiply(d, a[0].low, a[1].low, a[2].low, a[3].low, b[0].high, b[1].high);
        multiply(d, a[0].high, a[1].high, a[2].high, a[3].high, b[0].low, b[1].low);
        multiply(d, a[0].high, a[1].high, a[2].high, a[3].high, b[0].high, b[1].high);
        for (int i = 0; i < 4; i++)
            sum[i] += d[i];
    }
    for (int i = 0; i < 4; i++)
        if (m + i / 2 * 8 < M && n + 2 * t + i % 2 < N)
            C[(m + i / 2 * 8) * N + n + 2 * t + i % 2] = sum[i];
}
