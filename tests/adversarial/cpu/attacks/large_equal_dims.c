/* takes B for its transpose where it is square and as large as the timed one */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += A[i * K + k] * (K == N && K >= 224 ? B[j * N + k] : B[k * N + j]);
            C[i * N + j] = s;
        }
}
