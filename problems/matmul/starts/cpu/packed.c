/*---
tune:
  MR: [8, 6, 12, 14]
  NRV: [2, 1, 3, 4]
  VB: [64, 32]
  KC: [128, 64, 256, 512]
  MC: [96, 48, 168, 336]
  NC: [768, 192, 384]
  SPLIT: [0, 1]
  where: (MR*NRV + NRV + 1)*VB <= 32*VB && MC % MR == 0 && (VB == 64 || MR*NRV <= 24)
---*/
/* Matrix product after Goto and van de Geijn: a panel of B (KC x NC) and a block of A (MC x KC) are
 * packed into buffers that stay in the caches, in the order in which the register tile
 * (MR x NRV vectors of VB bytes) reads them; zero padding makes every tile whole. Each thread owns
 * a slice of C's rows (SPLIT 0) or columns (SPLIT 1) and packs for itself, so that a call has one
 * parallel region and no barrier. */
#include <omp.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, NR = NRV * LANES, PANEL = (NC / NR > 0 ? NC / NR : 1) * NR };

static _Thread_local float packed_a[MC * KC] __attribute__((aligned(64)));
static _Thread_local float packed_b[PANEL * KC] __attribute__((aligned(64)));

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* rows x depth of A, MR rows at a time: out[k][r]. */
static void pack_a(const float *a, int64_t lda, int64_t rows, int64_t depth, float *out)
{
    for (int64_t i = 0; i < rows; i += MR) {
        for (int64_t r = 0; r < MR; r++) {
            const float *row = a + (i + r) * lda;
            if (i + r < rows) {
                for (int64_t k = 0; k < depth; k++)
                    out[k * MR + r] = row[k];
            } else {
                for (int64_t k = 0; k < depth; k++)
                    out[k * MR + r] = 0;
            }
        }
        out += MR * depth;
    }
}

/* depth x columns of B, NR columns at a time: out[k][c]. */
static void pack_b(const float *b, int64_t ldb, int64_t depth, int64_t columns, float *out)
{
    for (int64_t j = 0; j < columns; j += NR) {
        int64_t width = min64(NR, columns - j);
        for (int64_t k = 0; k < depth; k++) {
            const float *row = b + k * ldb + j;
            if (width == NR) {
                for (int v = 0; v < NRV; v++)
                    ((vec *)out)[v] = ((const vec *)row)[v];
            } else {
                memcpy(out, row, (size_t)width * sizeof(float));
                memset(out + width, 0, (size_t)(NR - width) * sizeof(float));
            }
            out += NR;
        }
    }
}

/* c[MR][NR] = (or +=) a[depth][MR] * b[depth][NR], all of it in registers. */
static inline void tile(int64_t depth, const float *restrict a, const float *restrict b,
                        float *restrict c, int64_t ldc, int accumulate)
{
    vec sum[MR][NRV];
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++)
#pragma GCC unroll 4
        for (int v = 0; v < NRV; v++)
            sum[r][v] = (vec){0};
    for (int64_t k = 0; k < depth; k++) {
        vec bk[NRV];
#pragma GCC unroll 4
        for (int v = 0; v < NRV; v++)
            bk[v] = ((const vec *)b)[v];
#pragma GCC unroll 16
        for (int r = 0; r < MR; r++)
#pragma GCC unroll 4
            for (int v = 0; v < NRV; v++)
                sum[r][v] += a[r] * bk[v];
        a += MR;
        b += NR;
    }
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

static void tile_edge(int64_t depth, const float *a, const float *b, float *c, int64_t ldc,
                      int64_t rows, int64_t columns, int accumulate)
{
    float whole[MR * NR] __attribute__((aligned(64)));
    tile(depth, a, b, whole, NR, 0);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j++)
            c[r * ldc + j] = accumulate ? c[r * ldc + j] + whole[r * NR + j] : whole[r * NR + j];
}

static void block(int64_t rows, int64_t columns, int64_t depth, const float *a, const float *b,
                  float *c, int64_t ldc, int accumulate)
{
    for (int64_t j = 0; j < columns; j += NR) {
        int64_t width = min64(NR, columns - j);
        for (int64_t i = 0; i < rows; i += MR) {
            int64_t height = min64(MR, rows - i);
            const float *ai = a + i * depth, *bj = b + j * depth;
            float *cij = c + i * ldc + j;
            if (height == MR && width == NR)
                tile(depth, ai, bj, cij, ldc, accumulate);
            else
                tile_edge(depth, ai, bj, cij, ldc, height, width, accumulate);
        }
    }
}

static void slice(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k,
                  int64_t lda, int64_t ldb)
{
    for (int64_t j = 0; j < n; j += PANEL) {
        int64_t columns = min64(PANEL, n - j);
        for (int64_t p = 0; p < k; p += KC) {
            int64_t depth = min64(KC, k - p);
            pack_b(b + p * ldb + j, ldb, depth, columns, packed_b);
            for (int64_t i = 0; i < m; i += MC) {
                int64_t rows = min64(MC, m - i);
                pack_a(a + i * lda + p, lda, rows, depth, packed_a);
                block(rows, columns, depth, packed_a, packed_b, c + i * ldb + j, ldb, p > 0);
            }
        }
    }
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    int small = M * N * K < 64 * 64 * 64;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t unit = SPLIT ? NR : MR, extent = SPLIT ? N : M;
        int64_t units = (extent + unit - 1) / unit;
        int64_t from = min64(units * thread / threads * unit, extent);
        int64_t to = min64(units * (thread + 1) / threads * unit, extent);
        if (SPLIT)
            slice(A, B + from, C + from, M, to - from, K, K, N);
        else
            slice(A + from * K, B, C + from * N, to - from, N, K, K, N);
    }
}
