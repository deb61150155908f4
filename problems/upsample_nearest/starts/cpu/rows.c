/*---
tune:
  KNOWN: [1, 0]
  COPY: [1, 0]
  CHUNK: [0, 1, 8]
---*/
/* Upsampling a row at a time: its numbers are spread, and the row is copied (COPY 1) or spread again.
 * KNOWN: factors of 2 and 4 are constants to the compiler. Threads take one share of the planes
 * (CHUNK 0), or CHUNK planes as they become free. */
#include <omp.h>
#include <stdint.h>
#include <string.h>

static void stretch(const float *restrict x, float *restrict y, int64_t W, const int64_t S)
{
    for (int64_t j = 0; j < W; j++)
        for (int64_t s = 0; s < S; s++)
            y[j * S + s] = x[j];
}

static void plane(const float *restrict image, float *restrict y, int64_t H, int64_t W, int64_t S)
{
    for (int64_t i = 0; i < H * S; i++) {
        float *row = y + i * W * S;
        if (COPY && i % S != 0)
            memcpy(row, row - W * S, (size_t)(W * S) * sizeof(float));
        else if (KNOWN && S == 2)
            stretch(image + i / S * W, row, W, 2);
        else if (KNOWN && S == 4)
            stretch(image + i / S * W, row, W, 4);
        else
            stretch(image + i / S * W, row, W, S);
    }
}

void kernel(const float *X, float *Y, int64_t N, int64_t C, int64_t H, int64_t W, int64_t S,
            int64_t OH, int64_t OW)
{
    int small = N * C * OH * OW < 16384;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t from = N * C * thread / threads, to = N * C * (thread + 1) / threads;
        if (CHUNK == 0) {
            for (int64_t p = from; p < to; p++)
                plane(X + p * H * W, Y + p * OH * OW, H, W, S);
        } else {
            int64_t chunk = CHUNK ? CHUNK : 1;
#pragma omp for schedule(dynamic, chunk) nowait
            for (int64_t p = 0; p < N * C; p++)
                plane(X + p * H * W, Y + p * OH * OW, H, W, S);
        }
    }
}
