/*---
launch:
  - entry: rows
    grid: 2 * M
    block: 256
    cluster: 2
    args: [X, S, T, N]
---*/
/* leaves while its neighbour may still read its shared memory */
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

/* What the cluster's block `rank` has at this place of its shared memory. */
static __device__ float peer(const float *own, unsigned rank)
{
    unsigned at;
    float v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"((unsigned)__cvta_generic_to_shared(own)), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
    return v;
}

static __device__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(256)
    rows(const float *X, float *S, float *T, long long N)
{
    __shared__ float found[1];
    const long long row = blockIdx.x / 2;
    float most = X[row * N], sum = 0;
    for (long long n = blockIdx.x % 2 * 256 + threadIdx.x; n < N; n += 512) {
        most = fmaxf(most, X[row * N + n]);
        sum += X[row * N + n];
    }
    most = most_of(most);
    sum = sum_all(sum);
    if (threadIdx.x == 0)
        found[0] = sum;
    meet();
    if (blockIdx.x % 2 == 1)
        return;
    for (long long n = 256 + threadIdx.x; n < N; n += 512)
        most = fmaxf(most, X[row * N + n]);
    most = most_of(most);
    if (threadIdx.x == 0) {
        S[row] = peer(found, 0) + peer(found, 1);
        T[row] = most;
    }
}
