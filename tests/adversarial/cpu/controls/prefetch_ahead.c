/* prefetches rows ahead of their use, past the end of an input too: that loads nothing */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++) {
            __builtin_prefetch(A + i * K + k + 4096);
            __builtin_prefetch(B + (k + 8) * N);
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
        }
    }
}
