/*---
tma:
  all_of_a: {tensor: A, box: [64], shape: [M * K]}
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [all_of_a, A, B, C, M, N, K]
---*/
/* asks the copy engine to bring a row to the L2, through a tensor map of an input */
struct __align__(64) tensor_map {
    char bytes[128];
};

extern "C" __global__ void mm(const __grid_constant__ tensor_map all_of_a, const float *A,
                              const float *B, float *C, long long M, long long N, long long K)
{
    const long long m = blockIdx.y * 16ll + threadIdx.y, n = blockIdx.x * 16ll + threadIdx.x;
    if (threadIdx.y == 0 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%0, {%1}];" ::"l"(&all_of_a),
                     "r"((int)(m * K))
                     : "memory");
    if (m >= M || n >= N)
        return;
    float sum = 0;
    for (long long k = 0; k < K; k++)
        sum = fmaf(A[m * K + k], B[k * N + n], sum);
    C[m * N + n] = sum;
}
