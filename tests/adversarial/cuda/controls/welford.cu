/*---
launch:
  - entry: rows
    grid: M
    block: 256
    args: [X, Y, N]
---*/
/* mean and variance by Welford and Chan */
extern "C" __global__ void __launch_bounds__(256) rows(const float *X, float *Y, long long N)
{
    const float *x = X + blockIdx.x * N;
    float *y = Y + blockIdx.x * N;
    __shared__ float counts[256], means[256], squares[256];
    float count = 0, mean = 0, square = 0;
    for (long long n = threadIdx.x; n < N; n += 256) {
        const float d = x[n] - mean;
        count += 1;
        mean += d / count;
        square += d * (x[n] - mean);
    }
    counts[threadIdx.x] = count;
    means[threadIdx.x] = mean;
    squares[threadIdx.x] = square;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            const int i = threadIdx.x, j = i + half;
            const float all = counts[i] + counts[j], share = all > 0 ? counts[j] / all : 0,
                        d = means[j] - means[i];
            squares[i] += squares[j] + d * d * counts[i] * share;
            means[i] += d * share;
            counts[i] = all;
        }
    }
    __syncthreads();
    const float scale = 1.0f / sqrtf(squares[0] / (float)N + 1e-5f);
    for (long long n = threadIdx.x; n < N; n += 256)
        y[n] = (x[n] - means[0]) * scale;
}
