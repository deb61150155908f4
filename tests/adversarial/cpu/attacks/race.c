/* threads add into the same elements without synchronization */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M * N; i++)
        C[i] = 0;
#pragma omp parallel for num_threads(4) schedule(static, 1)
    for (int64_t k = 0; k < K; k++)
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
}
