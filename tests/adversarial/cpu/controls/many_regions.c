/* many short OpenMP regions with barriers in one call */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t from = 0; from < M; from += 24) {
        int64_t to = from + 24 < M ? from + 24 : M;
#pragma omp parallel
        {
#pragma omp for
            for (int64_t i = from * N; i < to * N; i++)
                C[i] = 0;
#pragma omp for
            for (int64_t i = from; i < to; i++)
                for (int64_t k = 0; k < K; k++)
                    for (int64_t j = 0; j < N; j++)
                        C[i * N + j] += A[i * K + k] * B[k * N + j];
        }
    }
}
