/*---
launch:
  - entry: rows
    grid: 2 * M
    block: 256
    cluster: 2
    args: [X, S, T, N]
---*/
/* takes what its neighbour sends for what is there */
static __device__ float sum_all(float v)
{
    __shared__ float part[256];
    __syncthreads();
    part[threadIdx.x] = v;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    return part[0];
}

static __device__ float most_of(float v)
{
    __shared__ float part[256];
    __syncthreads();
    part[threadIdx.x] = v;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
    }
    __syncthreads();
    return part[0];
}

static __device__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

static __device__ unsigned at_first(const void *own)
{
    unsigned at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;"
                 : "=r"(at)
                 : "r"((unsigned)__cvta_generic_to_shared(own)));
    return at;
}

/* The second block sends its sum and its maximum to the first one's shared memory. */
extern "C" __global__ void __launch_bounds__(256)
    rows(const float *X, float *S, float *T, long long N)
{
    __shared__ __align__(8) float sent[2];
    __shared__ __align__(8) unsigned long long there;
    const long long row = blockIdx.x / 2;
    const unsigned bar = (unsigned)__cvta_generic_to_shared(&there);
    float most = X[row * N], sum = 0;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                     "fence.mbarrier_init.release.cluster;\n"
                     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 8;" ::"r"(bar)
                     : "memory");
    meet();
    for (long long n = blockIdx.x % 2 * 256 + threadIdx.x; n < N; n += 512) {
        most = fmaxf(most, X[row * N + n]);
        sum += X[row * N + n];
    }
    most = most_of(most);
    sum = sum_all(sum);
    if (threadIdx.x == 0 && blockIdx.x % 2 == 1)
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 "
                     "[%0], {%1, %2}, [%3];" ::"r"(at_first(sent)),
                     "f"(sum), "f"(most), "r"(at_first(&there))
                     : "memory");
    if (threadIdx.x == 0 && blockIdx.x % 2 == 0) {
        S[row] = sum + ((volatile float *)sent)[0];
        T[row] = fmaxf(most, ((volatile float *)sent)[1]);
    }
    meet();
}
