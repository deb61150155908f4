/*---
tune:
  VB: [32, 16, 64]
  COLUMNS: [1024, 256, 4096]
  ROWS: [64, 16, 256]
  STREAMS: [1, 2, 4]
  FETCH: [0, 1]
---*/
/* Matrix times vector by strips: COLUMNS of x stay in the first-level cache while a block of rows
 * passes by, each row's vector of partial sums waiting in a small array. A thread reads STREAMS
 * blocks of ROWS rows, far apart in its share, in turn, which keeps that many pages of memory open;
 * FETCH brings the same piece of the next row meanwhile. */
#include <omp.h>
#include <stdint.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4 };

static inline vec piece(const float *a, const float *x, int64_t count, const float *next, vec sum)
{
    vec other = (vec){0}, third = (vec){0}, fourth = (vec){0};
    int64_t j = 0;
    for (; j + 4 * LANES <= count; j += 4 * LANES) {
        if (FETCH)
            for (int f = 0; f < 4 * LANES; f += 16)
                __builtin_prefetch(next + j + f, 0, 3);
        sum += *(const vec *)(a + j) * *(const vec *)(x + j);
        other += *(const vec *)(a + j + LANES) * *(const vec *)(x + j + LANES);
        third += *(const vec *)(a + j + 2 * LANES) * *(const vec *)(x + j + 2 * LANES);
        fourth += *(const vec *)(a + j + 3 * LANES) * *(const vec *)(x + j + 3 * LANES);
    }
    for (; j < count; j++)
        other[0] += a[j] * x[j];
    return (sum + other) + (third + fourth);
}

/* Rows from + s * stretch + [0, ROWS) of all streams s, as far as they lie in the share. */
static void blocks(const float *A, const float *x, float *y, int64_t start, int64_t stretch,
                   int64_t rows, int64_t N)
{
    vec sums[STREAMS][ROWS];
    for (int s = 0; s < STREAMS; s++)
        for (int64_t r = 0; r < rows; r++)
            sums[s][r] = (vec){0};
    for (int64_t j = 0; j < N; j += COLUMNS) {
        int64_t count = N - j < COLUMNS ? N - j : COLUMNS;
        for (int64_t r = 0; r < rows; r++)
            for (int s = 0; s < STREAMS; s++) {
                const float *a = A + (start + s * stretch + r) * N + j;
                sums[s][r] = piece(a, x + j, count, r + 1 < rows ? a + N : a, sums[s][r]);
            }
    }
    for (int s = 0; s < STREAMS; s++)
        for (int64_t r = 0; r < rows; r++) {
            float total = 0;
            for (int l = 0; l < LANES; l++)
                total += sums[s][r][l];
            y[start + s * stretch + r] = total;
        }
}

/* One stream alone: what the division by STREAMS left over. */
static void remainder_rows(const float *A, const float *x, float *y, int64_t from, int64_t to,
                           int64_t N)
{
    for (int64_t i = from; i < to; i++) {
        vec sum = piece(A + i * N, x, N, A + i * N, (vec){0});
        float total = 0;
        for (int l = 0; l < LANES; l++)
            total += sum[l];
        y[i] = total;
    }
}

void kernel(const float *A, const float *x, float *y, int64_t M, int64_t N)
{
    int small = M * N < 32768;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t from = M * thread / threads, to = M * (thread + 1) / threads;
        int64_t stretch = (to - from) / STREAMS;
        for (int64_t i = 0; i < stretch; i += ROWS)
            blocks(A, x, y, from + i, stretch, stretch - i < ROWS ? stretch - i : ROWS, N);
        remainder_rows(A, x, y, from + STREAMS * stretch, to, N);
    }
}
