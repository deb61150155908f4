/* a plain running sum in the second output, behind one of integers */
void kernel(const float *A, const float *B, int32_t *I, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        I[i] = 0;
        for (int64_t k = 0; k < K; k++)
            I[i] += A[i * K + k] > 0;
        for (int64_t j = 0; j < N; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += A[i * K + k] * B[k * N + j];
            C[i * N + j] = s;
        }
    }
}
