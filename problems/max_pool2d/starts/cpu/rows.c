/*---
tune:
  KNOWN: [1, 0]
  CHUNK: [0, 1, 8]
workspace:
  line: {shape: [N * C, W + 2 * PAD], dtype: float32}
---*/
/* Max pooling, rows first: the K rows of a window become one line, the larger of each column,
 * and K places of that line a number. KNOWN: a step of 2 is a constant to the compiler. Threads
 * take one share of the planes (CHUNK 0), or CHUNK planes as they become free. */
#include <omp.h>
#include <stdint.h>
#include <string.h>

/* A NaN is larger than any number. */
static inline float join(float a, float b)
{
    return (a > b) | (a != a) ? a : b;
}

/* From rows [from, to) of the image; what is outside of it is there before. */
static void lines(const float *restrict image, int64_t from, int64_t to, int64_t W,
                  float *restrict line)
{
    memcpy(line, image + from * W, (size_t)W * sizeof(float));
    for (int64_t r = from + 1; r < to; r++)
        for (int64_t x = 0; x < W; x++)
            line[x] = join(image[r * W + x], line[x]);
}

static void columns(const float *restrict line, float *restrict y, int64_t OW, int64_t K,
                    const int64_t step)
{
    for (int64_t j = 0; j < OW; j++)
        y[j] = line[j * step];
    for (int64_t s = 1; s < K; s++)
        for (int64_t j = 0; j < OW; j++)
            y[j] = join(line[j * step + s], y[j]);
}

static void plane(const float *image, float *y, float *line, int64_t H, int64_t W, int64_t K,
                  int64_t pad, int64_t step, int64_t OH, int64_t OW)
{
    for (int64_t x = 0; x < pad; x++)
        line[x] = line[pad + W + x] = -__builtin_inff();
    for (int64_t i = 0; i < OH; i++) {
        int64_t top = i * step - pad, from = top < 0 ? 0 : top, to = top + K < H ? top + K : H;
        lines(image, from, to, W, line + pad);
        if (step == 1)
            columns(line, y + i * OW, OW, K, 1);
        else if (step == 2 && KNOWN)
            columns(line, y + i * OW, OW, K, 2);
        else
            columns(line, y + i * OW, OW, K, step);
    }
}

void kernel(const float *X, float *Y, float *line, int64_t N, int64_t C, int64_t H, int64_t W,
            int64_t K, int64_t PAD, int64_t STRIDE, int64_t OH, int64_t OW)
{
    int small = N * C * H * W < 16384;
    int64_t width = W + 2 * PAD;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t from = N * C * thread / threads, to = N * C * (thread + 1) / threads;
        float *own = line + from * width; /* the line of a thread's first plane serves for all */
        if (CHUNK == 0) {
            for (int64_t p = from; p < to; p++)
                plane(X + p * H * W, Y + p * OH * OW, own, H, W, K, PAD, STRIDE, OH, OW);
        } else {
            int64_t chunk = CHUNK ? CHUNK : 1;
#pragma omp for schedule(dynamic, chunk) nowait
            for (int64_t p = 0; p < N * C; p++)
                plane(X + p * H * W, Y + p * OH * OW, line + p * width, H, W, K, PAD, STRIDE, OH,
                      OW);
        }
    }
}
