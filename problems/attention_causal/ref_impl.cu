/*---
launch:
  - entry: reference
    grid: H * L
    block: 128
    args: [Q, K, V, O, L, D]
---*/
/* The definition in float64, for shapes at which numpy takes its time: a block a query, its scores
 * in pieces of 1024. Each number of the result is one thread's from its first to its last. */
extern "C" __global__ void __launch_bounds__(128)
    reference(const double *Q, const double *K, const double *V, double *O, long long L,
              long long D)
{
    __shared__ double weights[1024];
    const double *q = Q + blockIdx.x * D, *k = K + blockIdx.x / L * L * D,
                 *v = V + blockIdx.x / L * L * D;
    const long long keys = blockIdx.x % L + 1;
    double *o = O + blockIdx.x * D, most = -1.7976931348623157e308, sum = 0;
    for (long long d = threadIdx.x; d < D; d += 128)
        o[d] = 0;
    for (long long j0 = 0; j0 < keys; j0 += 1024) {
        const int count = keys - j0 < 1024 ? (int)(keys - j0) : 1024;
        __syncthreads();
        for (int j = threadIdx.x; j < count; j += 128) {
            double score = 0;
            for (long long d = 0; d < D; d++)
                score = fma(q[d], k[(j0 + j) * D + d], score);
            weights[j] = score / sqrt((double)D);
        }
        __syncthreads();
        double before = most;
        for (int j = 0; j < count; j++)
            most = fmax(most, weights[j]);
        __syncthreads();
        for (int j = threadIdx.x; j < count; j += 128)
            weights[j] = exp(weights[j] - most);
        __syncthreads();
        const double less = exp(before - most);
        sum *= less;
        for (int j = 0; j < count; j++)
            sum += weights[j];
        for (long long d = threadIdx.x; d < D; d += 128) {
            double part = 0;
            for (int j = 0; j < count; j++)
                part = fma(weights[j], v[(j0 + j) * D + d], part);
            o[d] = o[d] * less + part;
        }
    }
    for (long long d = threadIdx.x; d < D; d += 128)
        o[d] /= sum;
}
