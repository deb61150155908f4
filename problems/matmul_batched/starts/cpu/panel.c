/*---
tune:
  MR: [4, 6, 8, 12]
  NRV: [2, 1, 3, 4]
  VB: [64, 32]
  KC: [128, 64, 256, 512]
  KU: [1, 2, 4]
  ROWS: [0, 64, 128]
  DYNAMIC: [0, 1]
  where: MR*NRV + NRV < 32 && (VB == 64 || MR*NRV <= 24)
---*/
/* Batched matrix product with only panels of B packed: a panel (KC rows, one register tile wide) is
 * copied into a buffer that stays in the first-level cache, and the rows of A, read where they lie,
 * pass by it in tiles of MR. A piece of work is a panel of one product against ROWS rows (0: all);
 * pieces go to the threads in order or, DYNAMIC, as they become free. */
#include <omp.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, NR = NRV * LANES };

static _Thread_local float panel[NR * KC] __attribute__((aligned(64)));
static _Thread_local float edge_a[MR * KC] __attribute__((aligned(64)));

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void pack(const float *b, int64_t ldb, int64_t depth, int64_t width)
{
    float *out = panel;
    for (int64_t k = 0; k < depth; k++, out += NR) {
        const float *row = b + k * ldb;
        if (width == NR) {
#pragma GCC unroll 4
            for (int v = 0; v < NRV; v++)
                ((vec *)out)[v] = ((const vec *)row)[v];
        } else {
            memset(out, 0, NR * sizeof(float));
            memcpy(out, row, (size_t)width * sizeof(float));
        }
    }
}

static inline void step(const float *a, int64_t lda, const float *b, vec sum[MR][NRV])
{
    vec row[NRV];
#pragma GCC unroll 4
    for (int v = 0; v < NRV; v++)
        row[v] = ((const vec *)b)[v];
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++)
#pragma GCC unroll 4
        for (int v = 0; v < NRV; v++)
            sum[r][v] += a[r * lda] * row[v];
}

/* c[MR][NR] = (or +=) a[MR][depth] * panel[depth][NR] */
static inline void tile(int64_t depth, const float *restrict a, int64_t lda, float *restrict c,
                        int64_t ldc, int accumulate)
{
    vec sum[MR][NRV];
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++)
#pragma GCC unroll 4
        for (int v = 0; v < NRV; v++)
            sum[r][v] = (vec){0};
    int64_t k = 0;
    for (; k + KU <= depth; k += KU)
#pragma GCC unroll 4
        for (int u = 0; u < KU; u++)
            step(a + k + u, lda, panel + (k + u) * NR, sum);
    for (; k < depth; k++)
        step(a + k, lda, panel + k * NR, sum);
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++)
#pragma GCC unroll 4
        for (int v = 0; v < NRV; v++) {
            vec *out = (vec *)(c + r * ldc) + v;
            if (accumulate)
                sum[r][v] += *out;
            *out = sum[r][v];
        }
}

static void tile_edge(int64_t depth, const float *a, int64_t lda, float *c, int64_t ldc,
                      int64_t rows, int64_t columns, int accumulate)
{
    float whole[MR * NR] __attribute__((aligned(64)));
    tile(depth, a, lda, whole, NR, 0);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j++)
            c[r * ldc + j] = accumulate ? c[r * ldc + j] + whole[r * NR + j] : whole[r * NR + j];
}

/* c[rows][width] = a[rows][k] * b[k][width], width at most NR */
static void piece(const float *a, const float *b, float *c, int64_t rows, int64_t width, int64_t k,
                  int64_t lda, int64_t ldb)
{
    for (int64_t p = 0; p < k; p += KC) {
        int64_t depth = min64(KC, k - p), i = 0;
        pack(b + p * ldb, ldb, depth, width);
        for (; i + MR <= rows; i += MR) {
            if (width == NR)
                tile(depth, a + i * lda + p, lda, c + i * ldb, ldb, p > 0);
            else
                tile_edge(depth, a + i * lda + p, lda, c + i * ldb, ldb, MR, width, p > 0);
        }
        if (i == rows)
            continue;
        for (int64_t r = 0; r < MR; r++) {
            if (i + r < rows)
                memcpy(edge_a + r * KC, a + (i + r) * lda + p, (size_t)depth * sizeof(float));
            else
                memset(edge_a + r * KC, 0, (size_t)depth * sizeof(float));
        }
        tile_edge(depth, edge_a, KC, c + i * ldb, ldb, rows - i, width, p > 0);
    }
}

#if DYNAMIC
#define ORDER schedule(dynamic, 1)
#else
#define ORDER schedule(static)
#endif

void kernel(const float *A, const float *B, float *C, int64_t BATCH, int64_t M, int64_t N,
            int64_t K)
{
    int64_t height = ROWS ? ROWS : M, panels = (N + NR - 1) / NR;
    int64_t each = panels * ((M + height - 1) / height);
    int small = BATCH * M * N * K < 64 * 64 * 64;
#pragma omp parallel for ORDER if (!small)
    for (int64_t w = 0; w < BATCH * each; w++) {
        int64_t g = w / each, i = w % each / panels * height, j = w % panels * NR;
        piece(A + (g * M + i) * K, B + g * K * N + j, C + (g * M + i) * N + j, min64(height, M - i),
              min64(NR, N - j), K, K, N);
    }
}
