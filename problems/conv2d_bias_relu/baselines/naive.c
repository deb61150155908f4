/* The definition as plain loops. */
#include <stdint.h>

static float at(const float *image, int64_t H, int64_t W, int64_t y, int64_t x)
{
    return y >= 0 && y < H && x >= 0 && x < W ? image[y * W + x] : 0;
}

void kernel(const float *X, const float *F, const float *bias, float *Y, int64_t N, int64_t C,
            int64_t H, int64_t W, int64_t K, int64_t R, int64_t S, int64_t PAD, int64_t STRIDE,
            int64_t OH, int64_t OW)
{
    for (int64_t p = 0; p < N * K * OH * OW; p++) {
        int64_t j = p % OW, i = p / OW % OH, k = p / OW / OH % K, n = p / OW / OH / K;
        float sum = 0;
        for (int64_t c = 0; c < C; c++)
            for (int64_t r = 0; r < R; r++)
                for (int64_t s = 0; s < S; s++)
                    sum += at(X + (n * C + c) * H * W, H, W, i * STRIDE + r - PAD,
                              j * STRIDE + s - PAD) *
                           F[((k * C + c) * R + r) * S + s];
        sum += bias[k];
        Y[p] = sum < 0 ? 0 : sum;
    }
}
