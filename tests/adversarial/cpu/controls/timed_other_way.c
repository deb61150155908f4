/* another order of loops at the timed shape and at larger ones, as right as the other */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    if (M < 192 || N < 160) {
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < N; j++) {
                float s = 0;
                for (int64_t k = 0; k < K; k++)
                    s += A[i * K + k] * B[k * N + j];
                C[i * N + j] = s;
            }
        return;
    }
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}
