/* tiles of 4 x 8 in registers, sums in blocks of 64 terms */
enum { ROWS = 4, COLUMNS = 8, BLOCK = 64 };

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i += ROWS)
        for (int64_t j = 0; j < N; j += COLUMNS) {
            int64_t rows = M - i < ROWS ? M - i : ROWS, columns = N - j < COLUMNS ? N - j : COLUMNS;
            float total[ROWS][COLUMNS] = {{0}};
            for (int64_t from = 0; from < K; from += BLOCK) {
                int64_t to = K - from < BLOCK ? K : from + BLOCK;
                float part[ROWS][COLUMNS] = {{0}};
                for (int64_t k = from; k < to; k++)
                    for (int64_t r = 0; r < rows; r++)
                        for (int64_t c = 0; c < columns; c++)
                            part[r][c] += A[(i + r) * K + k] * B[k * N + j + c];
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t c = 0; c < columns; c++)
                        total[r][c] += part[r][c];
            }
            for (int64_t r = 0; r < rows; r++)
                for (int64_t c = 0; c < columns; c++)
                    C[(i + r) * N + j + c] = total[r][c];
        }
}
