/* a plain running sum in float32 */
void kernel(const float *X, float *S, float *T, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        float s = 0, m = X[i * N];
        for (int64_t j = 0; j < N; j++) {
            s += X[i * N + j];
            m = X[i * N + j] <= m || m != m ? m : X[i * N + j]; /* a NaN stays */
        }
        S[i] = s;
        T[i] = m;
    }
}
