/* the nearest in float32, the last of those that it cannot tell apart */
void kernel(const float *X, const float *Y, int32_t *I, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        float best = 0;
        int64_t at = -1;
        for (int64_t j = 0; j < N; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++) {
                float d = X[i * K + k] - Y[j * K + k];
                s += d * d;
            }
            if (at < 0 || s <= best) {
                best = s;
                at = j;
            }
        }
        I[i] = (int32_t)at;
    }
}
