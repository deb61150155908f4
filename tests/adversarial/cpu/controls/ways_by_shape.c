/* ways of their own for a single row, for whole tiles and for the rest */
static void one_row(const float *A, const float *B, float *C, int64_t N, int64_t K)
{
    for (int64_t j = 0; j < N; j++)
        C[j] = 0.0f;
    for (int64_t k = 0; k < K; k++)
        for (int64_t j = 0; j < N; j++)
            C[j] += A[k] * B[k * N + j];
}

static void whole_tiles(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j += 16) {
            float sums[16] = {0};
            for (int64_t k = 0; k < K; k++)
                for (int64_t l = 0; l < 16; l++)
                    sums[l] += A[i * K + k] * B[k * N + j + l];
            for (int64_t l = 0; l < 16; l++)
                C[i * N + j + l] = sums[l];
        }
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    if (M == 1) {
        one_row(A, B, C, N, K);
        return;
    }
    if (M % 16 == 0 && N % 16 == 0 && K % 16 == 0) {
        whole_tiles(A, B, C, M, N, K);
        return;
    }
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += A[i * K + k] * B[k * N + j];
            C[i * N + j] = s;
        }
}
