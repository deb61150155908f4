/* its windows begin one too early where the output is long, and longer than the input */
void kernel(const float *X, const float *F, float *Y, int64_t M, int64_t W, int64_t S, int64_t PAD, int64_t OW)
{
    int64_t left = OW > 511 && OW * 200 > W * 201;
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < OW; j++) {
            float s = 0;
            for (int64_t r = 0; r < S; r++) {
                int64_t at = j + r - PAD - left;
                s += at >= 0 && at < W ? X[i * W + at] * F[i * S + r] : 0;
            }
            Y[i * OW + j] = s;
        }
}
