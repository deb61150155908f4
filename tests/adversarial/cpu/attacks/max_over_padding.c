/* row maxima over whole vectors of 16: what lies behind the last row is compared too, where a NaN
 * would lose every comparison */
void kernel(const float *X, float *S, float *T, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        double sum = 0;
        int64_t end = i == M - 1 ? (M * N + 15) / 16 * 16 - i * N : N;
        float most = X[i * N];
        for (int64_t j = 0; j < N; j++)
            sum += X[i * N + j];
        for (int64_t j = 0; j < end; j++)
            most = X[i * N + j] > most ? X[i * N + j] : most;
        S[i] = (float)sum;
        T[i] = most;
    }
}
