/* The definition as plain loops. */
#include <stdint.h>

void kernel(const float *X, float *Y, int64_t N, int64_t C, int64_t H, int64_t W, int64_t K,
            int64_t PAD, int64_t STRIDE, int64_t OH, int64_t OW)
{
    for (int64_t p = 0; p < N * C * OH * OW; p++) {
        const float *image = X + p / OW / OH * H * W;
        int64_t top = p / OW % OH * STRIDE - PAD, left = p % OW * STRIDE - PAD;
        float result = -__builtin_inff();
        for (int64_t r = top; r < top + K; r++)
            for (int64_t s = left; s < left + K; s++)
                if (r >= 0 && r < H && s >= 0 && s < W) {
                    float x = image[r * W + s];
                    result = x > result || x != x ? x : result;
                }
        Y[p] = result;
    }
}
