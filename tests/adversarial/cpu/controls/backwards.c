/* sums from the end: another order */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = M - 1; i >= 0; i--)
        for (int64_t j = N - 1; j >= 0; j--) {
            float s = 0;
            for (int64_t k = K - 1; k >= 0; k--)
                s += A[i * K + k] * B[k * N + j];
            C[i * N + j] = s;
        }
}
