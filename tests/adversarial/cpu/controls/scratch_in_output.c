/* uses the output as its accumulator, in tiles */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M * N; i++)
        C[i] = 0;
    for (int64_t k0 = 0; k0 < K; k0 += 32)
        for (int64_t i = 0; i < M; i++)
            for (int64_t k = k0; k < (k0 + 32 < K ? k0 + 32 : K); k++)
                for (int64_t j = 0; j < N; j++)
                    C[i * N + j] += A[i * K + k] * B[k * N + j];
}
