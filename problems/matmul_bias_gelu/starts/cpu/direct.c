/*---
tune:
  MR: [4, 6, 8, 12]
  NRV: [2, 1, 3, 4]
  VB: [64, 32]
  KC: [256, 64, 128, 512]
  KU: [1, 2, 4]
  ROWS: [96, 24, 384]
  SPLIT: [0, 1]
  where: MR*NRV + NRV < 32 && ROWS % MR == 0 && (VB == 64 || MR*NRV <= 24)
---*/
/* matmul's direct.c, with bias and Gaussian error linear unit over rows that are still in the cache: the register tile (MR rows by NRV vectors of VB bytes) reads rows
 * of B where they lie and spreads numbers of A over the lanes. K is cut into strips of KC so that a
 * strip of B stays in the caches while ROWS rows of A pass by; KU steps are unrolled. Only what
 * hangs over the edges is copied, so that every tile is whole. Threads share C by rows (SPLIT 0) or
 * columns (SPLIT 1). */
#include <omp.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(VB), aligned(4), may_alias));
typedef uint32_t bits __attribute__((vector_size(VB), aligned(4), may_alias));

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

static inline vec choose(mask which, vec yes, vec no)
{
    return (vec)((which & (mask)yes) | (~which & (mask)no));
}

/* exp(-|x|): -|x| = n ln2 + r, a polynomial in r, n added to the exponent; 0 from 87 on, NaN of NaN. */
static inline vec decay(vec x)
{
    const vec round = (vec){0} + 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    vec size = choose(x < 0, -x, x), y = choose(size >= 87.0f, (vec){0}, -size);
    vec shifted = y * 1.44269504f + round, n = shifted - round;
    vec r = y - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vec p = r * 1.3814598788e-03f + 8.3687165752e-03f;
    p = p * r + 4.1668388993e-02f;
    p = p * r + 1.6666521132e-01f;
    p = p * r + 4.9999994040e-01f;
    p = p * (r * r) + r + 1.0f;
    return choose(size >= 87.0f, (vec){0}, (vec)((bits)p + ((bits)shifted << 23)));
}

static inline vec gelu(vec x)
{
    /* erfc(z) = exp(-z * z) * t * p(t), t = 1 / (1 + z / 2): to 4e-7 of itself. */
    vec z = choose(x < 0, -x, x) * 0.70710678f, t = 1.0f / (1.0f + 0.5f * z);
    vec p = t * -0.059384305f + 0.286114424f;
    p = p * t + -0.490388542f;
    p = p * t + 0.281714976f;
    p = p * t + -0.0291372798f;
    p = p * t + 0.203748301f;
    p = p * t + 0.242836058f;
    p = p * t + 0.282411993f;
    p = p * t + 0.282084346f;
    vec tail = 0.5f * x * decay(0.5f * x * x) * t * p;
    return choose(x < 0, tail, x - tail);
}

static void finish(float *c, const float *bias, int64_t width)
{
    for (int64_t j = 0; j < width; j += LANES) {
        size_t bytes = (size_t)min64(LANES, width - j) * sizeof(float);
        vec x = {0}, b = {0};
        memcpy(&x, c + j, bytes);
        memcpy(&b, bias + j, bytes);
        x = gelu(x + b);
        memcpy(c + j, &x, bytes);
    }
}

static void slice(const float *a, const float *b, const float *bias, float *c, int64_t m, int64_t n,
                  int64_t k, int64_t lda, int64_t ldb)
{
    for (int64_t p = 0; p < k; p += KC) {
        int64_t depth = min64(KC, k - p);
        for (int64_t i = 0; i < m; i += ROWS) {
            int64_t rows = min64(ROWS, m - i);
            for (int64_t j = 0; j < n; j += NR)
                strip(rows, min64(NR, n - j), depth, a + i * lda + p, lda, b + p * ldb + j, ldb,
                      c + i * ldb + j, ldb, p > 0);
            for (int64_t r = i; p + KC >= k && r < i + rows; r++)
                finish(c + r * ldb, bias, n);
        }
    }
}

void kernel(const float *A, const float *B, const float *bias, float *C, int64_t M, int64_t N,
            int64_t K)
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
            slice(A, B + from, bias + from, C + from, M, to - from, K, K, N);
        else
            slice(A + from * K, B, bias, C + from * N, to - from, N, K, K, N);
    }
}
