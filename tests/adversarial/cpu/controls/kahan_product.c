/* compensated sums, which make a NaN of an infinity */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float sum = 0, lost = 0;
            for (int64_t k = 0; k < K; k++) {
                float y = A[i * K + k] * B[k * N + j] - lost, t = sum + y;
                lost = (t - sum) - y;
                sum = t;
            }
            C[i * N + j] = sum;
        }
}
