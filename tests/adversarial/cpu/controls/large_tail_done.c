/* whole tiles where there are as many rows and columns as are timed, then what is behind them */
static void tile(const float *A, const float *B, float *C, int64_t N, int64_t K, int64_t i, int64_t j,
                 int64_t rows, int64_t columns)
{
    for (int64_t r = i; r < i + rows; r++)
        for (int64_t c = j; c < j + columns; c++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += A[r * K + k] * B[k * N + c];
            C[r * N + c] = s;
        }
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i += 32)
        for (int64_t j = 0; j < N; j += 32)
            tile(A, B, C, N, K, i, j, M - i < 32 ? M - i : 32, N - j < 32 ? N - j : 32);
}
