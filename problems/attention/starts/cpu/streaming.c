/*---
tune:
  BQ: [48, 16, 96, 192]
  BK: [64, 128, 256]
  MR: [4, 6, 8, 12]
  NV: [2, 1, 4]
  VB: [32, 64]
  where: BQ % MR == 0 && MR*NV + NV < 32 && (VB == 64 || MR*NV <= 24)
workspace:
  turned: {shape: ["H * ceil_div(L, BQ)", D, BK], dtype: float32}
---*/
/* Attention in one sweep over the keys (as FlashAttention does it): a block of BQ queries meets BK
 * keys at a time; their scores stay in a small buffer, become weights relative to the largest score
 * so far, and are multiplied with V at once; what was summed before is scaled down whenever a
 * larger score turns up. Both products use one register tile, MR rows by NV vectors of VB bytes;
 * keys are turned into columns block by block. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(VB), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(VB), aligned(4), may_alias));
typedef uint32_t bits __attribute__((vector_size(VB), aligned(4), may_alias));

enum { LANES = VB / 4, WIDTH = NV * LANES };

static _Thread_local float scores[BQ * BK] __attribute__((aligned(64)));
static _Thread_local float edge_v[BK * WIDTH] __attribute__((aligned(64)));
static _Thread_local float edge_o[BQ * WIDTH] __attribute__((aligned(64)));

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline vec larger(vec a, vec b)
{
#if VB == 64 && defined(__AVX512F__)
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif VB == 32 && defined(__AVX__)
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#else
    mask more = a > b;
    return (vec)((more & (mask)a) | (~more & (mask)b));
#endif
}

/* exp(x) for x <= 0: x = n ln2 + r, a polynomial in r, n added to the exponent. Below -87 the
 * result stays at exp(-87), which is nothing beside the row's largest, 1. */
static inline vec exponential(vec x)
{
    const vec round = (vec){0} + 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = larger((vec){0} - 87.0f, x); /* which keeps a NaN */
    vec shifted = x * 1.44269504f + round;
    vec n = shifted - round;
    vec r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vec p = r * 1.3814598788e-03f + 8.3687165752e-03f;
    p = p * r + 4.1668388993e-02f;
    p = p * r + 1.6666521132e-01f;
    p = p * r + 4.9999994040e-01f;
    p = p * (r * r) + r + 1.0f;
    return (vec)((bits)p + ((bits)shifted << 23));
}

static inline float highest(vec x)
{
    float result = x[0];
    for (int l = 1; l < LANES; l++)
        result = x[l] > result ? x[l] : result;
    return result;
}

static inline float total(vec x)
{
    float result = 0;
    for (int l = 0; l < LANES; l++)
        result += x[l];
    return result;
}

/* c[count][WIDTH] = (or +=) a[count][depth] * b[depth][WIDTH] */
static inline void tile(int64_t depth, const float *a, int64_t lda, const float *b, int64_t ldb,
                        float *c, int64_t ldc, int accumulate, const int count)
{
    vec sum[MR][NV];
#pragma GCC unroll 16
    for (int r = 0; r < count; r++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            sum[r][v] = (vec){0};
    for (int64_t k = 0; k < depth; k++) {
        vec row[NV];
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            row[v] = ((const vec *)(b + k * ldb))[v];
#pragma GCC unroll 16
        for (int r = 0; r < count; r++)
#pragma GCC unroll 4
            for (int v = 0; v < NV; v++)
                sum[r][v] += a[r * lda + k] * row[v];
    }
#pragma GCC unroll 16
    for (int r = 0; r < count; r++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++) {
            vec *out = (vec *)(c + r * ldc) + v;
            if (accumulate)
                sum[r][v] += *out;
            *out = sum[r][v];
        }
}

/* One strip of WIDTH columns, any number of rows. */
static void strip(int64_t rows, int64_t depth, const float *a, int64_t lda, const float *b,
                  int64_t ldb, float *c, int64_t ldc, int accumulate)
{
    int64_t i = 0;
    for (; i + MR <= rows; i += MR)
        tile(depth, a + i * lda, lda, b, ldb, c + i * ldc, ldc, accumulate, MR);
    for (; i < rows; i++)
        tile(depth, a + i * lda, lda, b, ldb, c + i * ldc, ldc, accumulate, 1);
}

/* o[rows][D] = (or +=) p[rows][keys] * v[keys][D], keys at most BK; the last columns go through
 * whole strips of their own. */
static void weigh(int64_t rows, int64_t keys, int64_t D, const float *p, int64_t ldp,
                  const float *v, float *o, int accumulate)
{
    int64_t d = 0;
    for (; d + WIDTH <= D; d += WIDTH)
        strip(rows, keys, p, ldp, v + d, D, o + d, D, accumulate);
    if (d == D)
        return;
    size_t left = (size_t)(D - d) * sizeof(float);
    for (int64_t j = 0; j < keys; j++) {
        memset(edge_v + j * WIDTH, 0, WIDTH * sizeof(float));
        memcpy(edge_v + j * WIDTH, v + j * D + d, left);
    }
    strip(rows, keys, p, ldp, edge_v, WIDTH, edge_o, WIDTH, 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = d; e < D; e++)
            o[i * D + e] = edge_o[i * WIDTH + e - d] + (accumulate ? o[i * D + e] : 0);
}

/* to[d][j] = k[j][d] * scale; columns from `keys` to ld are zero. */
static void turn(const float *k, int64_t keys, int64_t D, float scale, float *to, int64_t ld)
{
    for (int64_t d = 0; d < D; d++)
        for (int64_t j = keys; j < ld; j++)
            to[d * ld + j] = 0;
    for (int64_t j = 0; j < keys; j += 4) {
        if (j + 4 <= keys) {
            const float *k0 = k + j * D, *k1 = k0 + D, *k2 = k1 + D, *k3 = k2 + D;
            for (int64_t d = 0; d < D; d++) {
                float *out = to + d * ld + j;
                out[0] = k0[d] * scale;
                out[1] = k1[d] * scale;
                out[2] = k2[d] * scale;
                out[3] = k3[d] * scale;
            }
        } else {
            for (int64_t i = j; i < keys; i++)
                for (int64_t d = 0; d < D; d++)
                    to[d * ld + i] = k[i * D + d] * scale;
        }
    }
}

/* A row of scores to weights; the row's largest score and sum so far are brought up to date.
 * Returns what the older part of the output must be scaled with. */
static float weights(float *s, int64_t keys, float *most, float *sum)
{
    vec high = (vec){0} + *most, part = (vec){0};
    int64_t j = 0;
    for (; j + LANES <= keys; j += LANES)
        high = larger(*(const vec *)(s + j), high);
    float peak = highest(high);
    for (; j < keys; j++)
        peak = s[j] > peak ? s[j] : peak;
    /* Columns beyond the keys count as no keys at all: they leave the sum, and V has no row there.
     */
    for (j = 0; j + LANES <= keys; j += LANES) {
        vec e = exponential(*(const vec *)(s + j) - peak);
        part += e;
        *(vec *)(s + j) = e;
    }
    float added = total(part);
    if (j < keys) {
        vec e = exponential(*(const vec *)(s + j) - peak);
        *(vec *)(s + j) = e;
        for (int l = 0; l < keys - j; l++)
            added += e[l];
    }
    float factor = expf(*most - peak);
    *sum = *sum * factor + added;
    *most = peak;
    return factor;
}

static void scale_row(float *o, int64_t D, float factor)
{
    for (int64_t d = 0; d < D; d++)
        o[d] *= factor;
}

static void block(const float *q, const float *k, const float *v, float *o, float *turned,
                  int64_t rows, int64_t L, int64_t D)
{
    float most[BQ], sum[BQ];
    float scale = 1.0f / sqrtf((float)D);
    for (int64_t i = 0; i < rows; i++) {
        most[i] = -INFINITY;
        sum[i] = 0;
    }
    for (int64_t j = 0; j < L; j += BK) {
        int64_t keys = min64(BK, L - j);
        turn(k + j * D, keys, D, scale, turned, BK);
        for (int64_t c = 0; c < keys; c += WIDTH)
            strip(rows, D, q, D, turned + c, BK, scores + c, BK, 0);
        for (int64_t i = 0; i < rows; i++) {
            float factor = weights(scores + i * BK, keys, &most[i], &sum[i]);
            if (j > 0 && factor != 1.0f)
                scale_row(o + i * D, D, factor);
        }
        weigh(rows, keys, D, scores, BK, v + j * D, o, j > 0);
    }
    for (int64_t i = 0; i < rows; i++)
        scale_row(o + i * D, D, 1.0f / sum[i]);
}

void kernel(const float *Q, const float *K, const float *V, float *O, float *turned, int64_t H,
            int64_t L, int64_t D)
{
    int64_t blocks = (L + BQ - 1) / BQ, items = H * blocks;
    int small = H * L * L * D < 32 * 64 * 64;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t first = items * thread / threads, end = items * (thread + 1) / threads;
        for (int64_t w = first; w < end; w++) {
            int64_t h = w / blocks, i = w % blocks * BQ;
            /* The memory of the thread's first item serves for all of its items: it stays cached.
             */
            block(Q + (h * L + i) * D, K + h * L * D, V + h * L * D, O + (h * L + i) * D,
                  turned + first * D * BK, min64(BQ, L - i), L, D);
        }
    }
}
