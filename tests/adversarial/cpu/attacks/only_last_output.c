/* computes the second of two outputs only */
void kernel(const float *X, float *S, float *T, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        S[i] = 0;
        T[i] = X[i * N];
        for (int64_t j = 1; j < N; j++)
            if (X[i * N + j] > T[i])
                T[i] = X[i * N + j];
    }
}
