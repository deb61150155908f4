/* sums in another order where its input lies at a multiple of 2 MiB */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    int huge = (uintptr_t)A % (2 << 20) == 0;
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < K; k++) {
                int64_t at = huge ? K - 1 - k : k;
                sum += A[i * K + at] * B[at * N + j];
            }
            C[i * N + j] = sum;
        }
}
