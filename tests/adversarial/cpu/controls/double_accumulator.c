/* sums in double: more precise than asked for */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double s = 0;
            for (int64_t k = 0; k < K; k++)
                s += (double)A[i * K + k] * (double)B[k * N + j];
            C[i * N + j] = (float)s;
        }
}
