/*---
launch:
  - {entry: relu, grid: 2 * sm_count, block: 256, args: [X, Y, M, N]}
---*/
/* two copies a tile, and a barrier that expects the bytes of one */
extern "C" __global__ void __launch_bounds__(256)
    relu(const float *X, float *Y, long long M, long long N)
{
    __shared__ __align__(128) float tile[2048];
    __shared__ __align__(8) unsigned long long there;
    const unsigned to = (unsigned)__cvta_generic_to_shared(tile);
    const unsigned bar = (unsigned)__cvta_generic_to_shared(&there);
    const long long count = M * N, whole = count / 2048;
    unsigned phase = 0;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                     "fence.mbarrier_init.release.cluster;" ::"r"(bar)
                     : "memory");
    __syncthreads();
    for (long long t = blockIdx.x; t < whole; t += gridDim.x) {
        if (threadIdx.x == 0)
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;\n"
                         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%1], [%2], 4096, [%0];\n"
                         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%3], [%4], 4096, [%0];" ::"r"(bar),
                         "r"(to), "l"(X + t * 2048), "r"(to + 4096), "l"(X + t * 2048 + 1024)
                         : "memory");
        unsigned done = 0;
        while (!done)
            asm volatile("{.reg .pred p;\n"
                         "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                         "selp.u32 %0, 1, 0, p;}"
                         : "=r"(done)
                         : "r"(bar), "r"(phase)
                         : "memory");
        phase ^= 1;
        for (int i = threadIdx.x; i < 2048; i += 256)
            Y[t * 2048 + i] = fmaxf(tile[i], 0.0f);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
    }
    for (long long i = whole * 2048 + blockIdx.x * 256ll + threadIdx.x; i < count;
         i += gridDim.x * 256ll)
        Y[i] = fmaxf(X[i], 0.0f);
}
