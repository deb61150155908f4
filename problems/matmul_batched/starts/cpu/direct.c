/*---
tune:
  MR: [4, 6, 8, 12]
  NRV: [2, 1, 3, 4]
  VB: [64, 32]
  KC: [256, 64, 128, 512]
  KU: [1, 2, 4]
  ROWS: [96, 24, 384]
  SHARE: [1, 2, 4]
  where: MR*NRV + NRV < 32 && ROWS % MR == 0 && (VB == 64 || MR*NRV <= 24)
---*/
/* Batched matrix product without packing: the register tile (MR rows by NRV vectors of VB bytes)
 * reads rows of B where they lie and spreads numbers of A over the lanes. K is cut into strips of
 * KC so that a strip of B stays in the caches while ROWS rows of A pass by; KU steps are unrolled.
 * Only what hangs over the edges is copied, so that every tile is whole. Each product's rows are
 * cut into SHARE pieces; threads take pieces as they become free. */
#include <omp.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, NR = NRV * LANES };

static _Thread_local float edge_a[MR * KC] __attribute__((aligned(64)));
static _Thread_local float edge_b[NR * KC] __attribute__((aligned(64)));

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
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

/* c[MR][NR] = (or +=) a[MR][depth] * b[depth][NR] */
static inline void tile(int64_t depth, const float *restrict a, int64_t lda,
                        const float *restrict b, int64_t ldb, float *restrict c, int64_t ldc,
                        int accumulate)
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
            step(a + k + u, lda, b + (k + u) * ldb, sum);
    for (; k < depth; k++)
        step(a + k, lda, b + k * ldb, sum);
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

static void tile_edge(int64_t depth, const float *a, int64_t lda, const float *b, int64_t ldb,
                      float *c, int64_t ldc, int64_t rows, int64_t columns, int accumulate)
{
    float whole[MR * NR] __attribute__((aligned(64)));
    tile(depth, a, lda, b, ldb, whole, NR, 0);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j++)
            c[r * ldc + j] = accumulate ? c[r * ldc + j] + whole[r * NR + j] : whole[r * NR + j];
}

/* One strip of columns, at most NR wide, against all rows of a block. */
static void strip(int64_t rows, int64_t width, int64_t depth, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float *c, int64_t ldc, int accumulate)
{
    if (width < NR) {
        for (int64_t k = 0; k < depth; k++) {
            memset(edge_b + k * NR, 0, NR * sizeof(float));
            memcpy(edge_b + k * NR, b + k * ldb, (size_t)width * sizeof(float));
        }
        b = edge_b;
        ldb = NR;
    }
    int64_t i = 0;
    for (; i + MR <= rows; i += MR) {
        if (width == NR)
            tile(depth, a + i * lda, lda, b, ldb, c + i * ldc, ldc, accumulate);
        else
            tile_edge(depth, a + i * lda, lda, b, ldb, c + i * ldc, ldc, MR, width, accumulate);
    }
    if (i < rows) {
        for (int64_t r = 0; r < rows - i; r++)
            memcpy(edge_a + r * KC, a + (i + r) * lda, (size_t)depth * sizeof(float));
        for (int64_t r = rows - i; r < MR; r++)
            memset(edge_a + r * KC, 0, (size_t)depth * sizeof(float));
        tile_edge(depth, edge_a, KC, b, ldb, c + i * ldc, ldc, rows - i, width, accumulate);
    }
}

static void slice(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k,
                  int64_t lda, int64_t ldb)
{
    for (int64_t p = 0; p < k; p += KC) {
        int64_t depth = min64(KC, k - p);
        for (int64_t i = 0; i < m; i += ROWS) {
            int64_t rows = min64(ROWS, m - i);
            for (int64_t j = 0; j < n; j += NR)
                strip(rows, min64(NR, n - j), depth, a + i * lda + p, lda, b + p * ldb + j, ldb,
                      c + i * ldb + j, ldb, p > 0);
        }
    }
}

void kernel(const float *A, const float *B, float *C, int64_t BATCH, int64_t M, int64_t N,
            int64_t K)
{
    int small = BATCH * M * N * K < 64 * 64 * 64;
    int64_t units = (M + MR - 1) / MR;
#pragma omp parallel for schedule(dynamic, 1) if (!small)
    for (int64_t w = 0; w < BATCH * SHARE; w++) {
        int64_t g = w / SHARE, s = w % SHARE;
        int64_t from = min64(units * s / SHARE * MR, M),
                to = min64(units * (s + 1) / SHARE * MR, M);
        slice(A + (g * M + from) * K, B + g * K * N, C + (g * M + from) * N, to - from, N, K, K, N);
    }
}
