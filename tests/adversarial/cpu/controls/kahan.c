/* compensated sums */
void kernel(const float *X, float *S, float *T, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        volatile float s = 0, c = 0;
        float m = X[i * N];
        for (int64_t j = 0; j < N; j++) {
            float y = X[i * N + j] - c, t = s + y;
            c = (t - s) - y;
            s = t;
            m = X[i * N + j] <= m || m != m ? m : X[i * N + j]; /* a NaN stays */
        }
        S[i] = s;
        T[i] = m;
    }
}
