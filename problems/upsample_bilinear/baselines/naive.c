/* The definition as a plain loop. */
#include <math.h>
#include <stdint.h>

void kernel(const float *X, float *Y, int64_t N, int64_t C, int64_t H, int64_t W, int64_t S,
            int64_t OH, int64_t OW)
{
    for (int64_t p = 0; p < N * C * OH * OW; p++) {
        const float *image = X + p / OW / OH * H * W;
        float y = fmaxf(((float)(p / OW % OH) + 0.5f) / (float)S - 0.5f, 0);
        float x = fmaxf(((float)(p % OW) + 0.5f) / (float)S - 0.5f, 0);
        int64_t y0 = (int64_t)y, y1 = y0 + 1 < H ? y0 + 1 : H - 1;
        int64_t x0 = (int64_t)x, x1 = x0 + 1 < W ? x0 + 1 : W - 1;
        float down = y - (float)y0, right = x - (float)x0;
        float above = image[y0 * W + x0] * (1 - right) + image[y0 * W + x1] * right;
        float below = image[y1 * W + x0] * (1 - right) + image[y1 * W + x1] * right;
        Y[p] = above * (1 - down) + below * down;
    }
}
