/*---
tune:
  KNOWN: [1, 0]
  CHUNK: [0, 1, 8]
workspace:
  line: {shape: [N * C, W + 2], dtype: float32}
---*/
/* Bilinear upsampling, rows first: two rows of the image become a line, and that a row of the result,
 * a remainder of its columns at a time. KNOWN: factors of 2 and 4 are constants to the compiler.
 * Threads take one share of the planes (CHUNK 0), or CHUNK planes as they become free. */
#include <omp.h>
#include <stdint.h>

/* A row of the result from the line with a number more on each side. */
static void stretch(const float *restrict line, float *restrict y, int64_t W, const int64_t S)
{
    for (int64_t s = 0; s < S; s++) {
        float place = ((float)s + 0.5f) / (float)S - 0.5f;
        const float *from = place < 0 ? line - 1 : line;
        float right = place < 0 ? place + 1 : place;
        for (int64_t x = 0; x < W; x++)
            y[x * S + s] = from[x] * (1 - right) + from[x + 1] * right;
    }
}

static void plane(const float *restrict image, float *restrict y, float *restrict line, int64_t H,
                  int64_t W, int64_t S)
{
    for (int64_t i = 0; i < H * S; i++) {
        int64_t place = 2 * i + 1 - S < 0 ? 0 : 2 * i + 1 - S; /* twice S times the row */
        int64_t top = place / (2 * S), next = top + 1 < H ? top + 1 : H - 1;
        float down = (float)(place % (2 * S)) / (float)(2 * S);
        for (int64_t x = 0; x < W; x++)
            line[x + 1] = image[top * W + x] * (1 - down) + image[next * W + x] * down;
        line[0] = line[1];
        line[W + 1] = line[W];
        if (KNOWN && S == 2)
            stretch(line + 1, y + i * W * S, W, 2);
        else if (KNOWN && S == 4)
            stretch(line + 1, y + i * W * S, W, 4);
        else
            stretch(line + 1, y + i * W * S, W, S);
    }
}

void kernel(const float *X, float *Y, float *line, int64_t N, int64_t C, int64_t H, int64_t W,
            int64_t S, int64_t OH, int64_t OW)
{
    int small = N * C * OH * OW < 16384;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t from = N * C * thread / threads, to = N * C * (thread + 1) / threads;
        float *own = line + from * (W + 2); /* the line of a thread's first plane serves for all */
        if (CHUNK == 0) {
            for (int64_t p = from; p < to; p++)
                plane(X + p * H * W, Y + p * OH * OW, own, H, W, S);
        } else {
            int64_t chunk = CHUNK ? CHUNK : 1;
#pragma omp for schedule(dynamic, chunk) nowait
            for (int64_t p = 0; p < N * C; p++)
                plane(X + p * H * W, Y + p * OH * OW, line + p * (W + 2), H, W, S);
        }
    }
}
