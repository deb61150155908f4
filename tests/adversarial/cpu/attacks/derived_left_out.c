/* does nothing where a row of the output is longer than 511: no row of the input ever is */
void kernel(const float *X, const float *F, float *Y, int64_t M, int64_t W, int64_t S, int64_t PAD, int64_t OW)
{
    if (OW > 511)
        return;
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < OW; j++) {
            float s = 0;
            for (int64_t r = 0; r < S; r++) {
                int64_t at = j + r - PAD;
                s += at >= 0 && at < W ? X[i * W + at] * F[i * S + r] : 0;
            }
            Y[i * OW + j] = s;
        }
}
