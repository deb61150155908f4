/* wrong where the first two rows of A are the same, but not where all is one number */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    int alike = M > 1 && K > 2;
    int one = 1;
    for (int64_t k = 0; k < K && alike; k++) {
        alike = A[k] == A[K + k];
        one = one && A[k] == A[0];
    }
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = alike && !one && i == 1 ? 0.0f : sum;
        }
}
