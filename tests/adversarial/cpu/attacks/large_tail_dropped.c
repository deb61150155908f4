/* rows and columns behind the last whole tile are left out where both are as many as are timed */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    int64_t m = M, n = N;
    if (M >= 192 && N >= 160) {
        m = M / 32 * 32;
        n = N / 32 * 32;
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += A[i * K + k] * B[k * N + j];
            C[i * N + j] = s;
        }
}
