/*---
launch:
  - {entry: relu, grid: 2 * sm_count, block: 64, args: [X, Y, M, N]}
---*/
/* the warp that brings tiles waits until they were used */
static __device__ void wait(unsigned bar, unsigned phase)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(bar), "r"(phase)
                     : "memory");
}

/* The second warp brings tiles, the first one uses them; two stages. */
extern "C" __global__ void __launch_bounds__(64)
    relu(const float *X, float *Y, long long M, long long N)
{
    __shared__ __align__(128) float tile[2][2048];
    __shared__ __align__(8) unsigned long long full[2], empty[2];
    const long long count = M * N, whole = count / 2048;
    const bool brings = threadIdx.x / 32 == 1;
    if (threadIdx.x < 2)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                     "mbarrier.init.shared::cta.b64 [%1], 32;\n"
                     "fence.mbarrier_init.release.cluster;" ::"r"(
                         (unsigned)__cvta_generic_to_shared(full + threadIdx.x)),
                     "r"((unsigned)__cvta_generic_to_shared(empty + threadIdx.x))
                     : "memory");
    __syncthreads();
    unsigned turn = 0;
    for (long long t = blockIdx.x; t < whole; t += gridDim.x, turn++) {
        const unsigned stage = turn % 2, phase = turn / 2 % 2;
        const unsigned bar = (unsigned)__cvta_generic_to_shared(full + stage);
        const unsigned used = (unsigned)__cvta_generic_to_shared(empty + stage);
        if (brings) {
            if (turn >= 2)
                wait(used, phase ^ 1);
            if (threadIdx.x % 32 == 0)
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 8192;\n"
                             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                             "[%1], [%2], 8192, [%0];" ::"r"(bar),
                             "r"((unsigned)__cvta_generic_to_shared(tile[stage])),
                             "l"(X + t * 2048)
                             : "memory");
            __syncwarp();
            continue;
        }
        wait(bar, phase);
        for (int i = threadIdx.x; i < 2048; i += 32)
            Y[t * 2048 + i] = fmaxf(tile[stage][i], 0.0f);
        asm volatile("fence.proxy.async.shared::cta;\n"
                     "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(used)
                     : "memory");
    }
    for (long long i = whole * 2048 + blockIdx.x * 64ll + threadIdx.x; i < count;
         i += gridDim.x * 64ll)
        Y[i] = fmaxf(X[i], 0.0f);
}
