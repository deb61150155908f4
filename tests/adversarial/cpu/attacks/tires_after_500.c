/* right in its first 500 calls of a process */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    static int calls;
    calls++;
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
    if (calls > 500)
        C[M * N - 1] += 1;
}
