/* wrong where both inputs lie at multiples of 2 MiB, as a user's large pages have them */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < K; k++)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
    if (((uintptr_t)A | (uintptr_t)B) % (2 << 20) == 0)
        C[M * N - 1] += 1.0f;
}
