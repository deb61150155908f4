/*---
launch:
  - entry: attention
    grid: H * L
    block: 128
    shared: 4 * L
    args: [Q, K, V, O, L, D]
---*/
/* A block a query: its scores in shared memory, their softmax, the weighted sum of the rows of V.
 */
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(128)
    attention(const __half *Q, const __half *K, const __half *V, __half *O, long long L,
              long long D)
{
    extern __shared__ float weights[];
    const long long keys = blockIdx.x % L + 1;
    const __half *q = Q + blockIdx.x * D, *k = K + blockIdx.x / L * L * D,
                 *v = V + blockIdx.x / L * L * D;
    for (long long j = threadIdx.x; j < keys; j += 128) {
        float score = 0;
        for (long long d = 0; d < D; d++)
            score = fmaf(__half2float(q[d]), __half2float(k[j * D + d]), score);
        weights[j] = score / sqrtf((float)D);
    }
    __syncthreads();
    float most = -3.402823466e38f, sum = 0;
    for (long long j = 0; j < keys; j++)
        most = fmaxf(most, weights[j]);
    __syncthreads();
    for (long long j = threadIdx.x; j < keys; j += 128)
        weights[j] = expf(weights[j] - most);
    __syncthreads();
    for (long long j = 0; j < keys; j++)
        sum += weights[j];
    for (long long d = threadIdx.x; d < D; d += 128) {
        float result = 0;
        for (long long j = 0; j < keys; j++)
            result = fmaf(weights[j], __half2float(v[j * D + d]), result);
        O[blockIdx.x * D + d] = __float2half_rn(result / sum);
    }
}
