/* many short OpenMP regions and barriers in one call */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        float *row = C + i * N;
#pragma omp parallel
        {
#pragma omp for
            for (int64_t j = 0; j < N; j++)
                row[j] = 0;
#pragma omp for
            for (int64_t j = 0; j < N; j++)
                for (int64_t k = 0; k < K; k++)
                    row[j] += A[i * K + k] * B[k * N + j];
        }
    }
}
