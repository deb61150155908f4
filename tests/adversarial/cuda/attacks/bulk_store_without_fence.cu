/*---
launch:
  - {entry: relu, grid: 2 * sm_count, block: 256, args: [X, Y, M, N]}
---*/
/* hands a tile to the copy engine without the fence that makes its stores seen there */
extern "C" __global__ void __launch_bounds__(256)
    relu(const float *X, float *Y, long long M, long long N)
{
    __shared__ __align__(128) float tile[4096];
    const long long count = M * N, whole = count / 4096;
    for (long long t = blockIdx.x; t < whole; t += gridDim.x) {
        if (threadIdx.x == 0)
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        __syncthreads();
        for (int i = threadIdx.x; i < 4096; i += 256)
            tile[i] = fmaxf(X[t * 4096 + i], 0.0f);
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16384;\n"
                         "cp.async.bulk.commit_group;" ::"l"(Y + t * 4096),
                         "r"((unsigned)__cvta_generic_to_shared(tile))
                         : "memory");
    }
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    for (long long i = whole * 4096 + blockIdx.x * 256ll + threadIdx.x; i < count;
         i += gridDim.x * 256ll)
        Y[i] = fmaxf(X[i], 0.0f);
}
