/*---
launch:
  - entry: group_norm_groups
    grid: G, N
    block: BLOCK
    args: [X, gamma, beta, Y, H, W, G, CG]
tune:
  BLOCK: [256, 512, 1024, 128]
---*/
/* A block of BLOCK threads a group, and a pass over the group for each of mean, variance and result. */
static __device__ float sum_all(float v)
{
    __shared__ float part[BLOCK];
    __syncthreads();
    part[threadIdx.x] = v;
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    return part[0];
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    group_norm_groups(const float *X, const float *gamma, const float *beta, float *Y, long long H,
                      long long W, long long G, long long CG)
{
    const long long plane = H * W, count = CG * plane,
                    first = (blockIdx.y * G + blockIdx.x) * count;
    const float *x = X + first;
    float sum = 0, squares = 0;
    for (long long i = threadIdx.x; i < count; i += BLOCK)
        sum += x[i];
    const float mean = sum_all(sum) / (float)count;
    for (long long i = threadIdx.x; i < count; i += BLOCK)
        squares += (x[i] - mean) * (x[i] - mean);
    const float factor = 1.0f / sqrtf(sum_all(squares) / (float)count + 1e-5f);
    for (long long i = threadIdx.x; i < count; i += BLOCK) {
        const long long c = blockIdx.x * CG + i / plane;
        Y[first + i] = (x[i] - mean) * factor * gamma[c] + beta[c];
    }
}
