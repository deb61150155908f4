/*---
tune:
  VB: [32, 16, 64]
  ROWS: [2, 1, 4, 8]
  UNROLL: [2, 1, 4]
  AHEAD: [0, 512, 2048, 8192]
  CHUNK: [0, 8, 64]
  where: ROWS*UNROLL <= 16
---*/
/* Row sums, ROWS neighbouring rows at a time with UNROLL independent sums each. AHEAD bytes of
 * every row are prefetched. Threads take one contiguous share of the rows (CHUNK 0) or CHUNK rows
 * as they become free. */
#include <omp.h>
#include <stdint.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, STEP = UNROLL * LANES };

static inline void together(const float *x, int64_t n, float *y, const int count)
{
    vec sum[ROWS][UNROLL];
#pragma GCC unroll 8
    for (int r = 0; r < count; r++)
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++)
            sum[r][u] = (vec){0};
    int64_t j = 0;
    for (; j + STEP <= n; j += STEP) {
#pragma GCC unroll 8
        for (int r = 0; r < count; r++) {
            const float *at = x + r * n + j;
            if (AHEAD)
                for (int u = 0; u < STEP * 4; u += 64)
                    __builtin_prefetch((const char *)at + AHEAD + u, 0, 3);
#pragma GCC unroll 4
            for (int u = 0; u < UNROLL; u++)
                sum[r][u] += *(const vec *)(at + u * LANES);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < count; r++) {
        vec all = sum[r][0];
        float total = 0;
#pragma GCC unroll 4
        for (int u = 1; u < UNROLL; u++)
            all += sum[r][u];
        for (int l = 0; l < LANES; l++)
            total += all[l];
        for (int64_t k = j; k < n; k++)
            total += x[r * n + k];
        y[r] = total;
    }
}

static void rows(const float *X, float *y, int64_t from, int64_t to, int64_t N)
{
    int64_t i = from;
    for (; i + ROWS <= to; i += ROWS)
        together(X + i * N, N, y + i, ROWS);
    for (; i < to; i++)
        together(X + i * N, N, y + i, 1);
}

void kernel(const float *X, float *y, int64_t M, int64_t N)
{
    int small = M * N < 32768;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        if (CHUNK == 0) {
            rows(X, y, M * thread / threads, M * (thread + 1) / threads, N);
        } else {
            int64_t chunk = CHUNK ? CHUNK : 1;
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t i = 0; i < M; i += chunk)
                rows(X, y, i, i + chunk < M ? i + chunk : M, N);
        }
    }
}
