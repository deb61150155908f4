/*---
tune:
  ROWS: [4]
  STREAM: [1]
  BAND: [112]
---*/
/* depthwise_conv2d, r3-c12: no champion: too noisy to say whether r3-c12 is faster than reference
 * Compile: gcc -std=gnu17 -O3 -march=native -fopenmp -shared -fPIC (and the flags of its `compile`
 * key, if it has one). Call: kernel(inputs..., outputs..., workspaces..., dims...),
 * pointers to row-major tensors, dims as int64_t, in the order of the problem's spec.
 * Evaluate: twagent eval depthwise_conv2d THIS_FILE */
#include <stddef.h>
#include <stdint.h>
#ifndef ROWS
#define ROWS 4
#endif
#ifndef STREAM
#define STREAM 1
#endif
#ifndef BAND
#define BAND 112
#endif

/* Depthwise convolution at step 1, 3 by 3, padding 1: ROWS rows of the result from left to right.
 * Each vector of the image is loaded once, aligned where rows are; its shifts by one come from it
 * and its neighbours in registers. */
#include <omp.h>
#include <stdint.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

struct shape {
    int64_t H, W, R, S, pad, step, OH, OW;
};

static inline int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static float one(const struct shape *sh, const float *image, const float *f, int64_t i, int64_t j)
{
    int64_t top = i * sh->step - sh->pad, left = j * sh->step - sh->pad;
    float sum = 0;
    for (int64_t r = top < 0 ? -top : 0; r < sh->R && top + r < sh->H; r++)
        for (int64_t s = left < 0 ? -left : 0; s < sh->S && left + s < sh->W; s++)
            sum += image[(top + r) * sh->W + left + s] * f[r * sh->S + s];
    return sum;
}

#if defined(__AVX512F__)
/* The lanes of columns [at, at + 16) that are in [0, width). */
static inline __mmask16 lanes(int64_t at, int64_t width)
{
    int64_t from = max64(0, -at), to = min64(16, width - at);
    return from >= to ? 0 : (__mmask16)((0xffffu >> (16 - (to - from))) << from);
}

static inline void put(float *to, __m512 v, __mmask16 mask, const int stream)
{
    if (stream)
        _mm512_stream_ps(to, v);
    else
        _mm512_mask_storeu_ps(to, mask, v);
}
#endif

#if defined(__AVX512F__)
enum { SEEN = ROWS + 2 };

/* Rows [from, to) of the result, 3 by 3 with padding 1: ROWS at a time, from left to right. */
static inline void band(const float *image, const float *f, float *y, int64_t from, int64_t to,
                        int64_t H, int64_t W, const int stream)
{
    __m512 w[9];
#pragma GCC unroll 9
    for (int k = 0; k < 9; k++)
        w[k] = _mm512_set1_ps(f[k]);
    for (int64_t i = from; i < to; i += ROWS) {
        const float *row[SEEN];
        __mmask16 on[SEEN];
        __m512 before[SEEN], here[SEEN];
        int64_t rows = min64(ROWS, to - i);
#pragma GCC unroll 10
        for (int q = 0; q < SEEN; q++) {
            int64_t at = i - 1 + q;
            int inside = at >= 0 && at < H;
            row[q] = image + (inside ? at : 0) * W;
            on[q] = inside ? 0xffff : 0;
            before[q] = _mm512_setzero_ps();
            here[q] = _mm512_maskz_loadu_ps(on[q] & lanes(0, W), row[q]);
        }
        for (int64_t j = 0; j < W; j += 16) {
            __mmask16 more = lanes(j + 16, W), mask = lanes(j, W);
            __m512 sum[ROWS];
#pragma GCC unroll 8
            for (int k = 0; k < ROWS; k++)
                sum[k] = _mm512_setzero_ps();
#pragma GCC unroll 10
            for (int q = 0; q < SEEN; q++) {
                __m512 next = _mm512_maskz_loadu_ps(on[q] & more, row[q] + (more ? j + 16 : 0));
                __m512 x[3];
                x[0] = (__m512)_mm512_alignr_epi32((__m512i)here[q], (__m512i)before[q], 15);
                x[1] = here[q];
                x[2] = (__m512)_mm512_alignr_epi32((__m512i)next, (__m512i)here[q], 1);
#pragma GCC unroll 3
                for (int s = 0; s < 3; s++)
#pragma GCC unroll 8
                    for (int k = 0; k < ROWS; k++)
                        if (q - k >= 0 && q - k < 3)
                            sum[k] = _mm512_fmadd_ps(x[s], w[(q - k) * 3 + s], sum[k]);
                before[q] = here[q];
                here[q] = next;
            }
#pragma GCC unroll 8
            for (int k = 0; k < ROWS; k++)
                if (k < rows)
                    put(y + (i + k) * W + j, sum[k], mask, stream);
        }
    }
}
#endif

void kernel(const float *X, const float *F, float *Y, int64_t N, int64_t C, int64_t H, int64_t W,
            int64_t R, int64_t S, int64_t PAD, int64_t STRIDE, int64_t OH, int64_t OW)
{
    struct shape sh = {H, W, R, S, PAD, STRIDE, OH, OW};
    int64_t bands = (OH + BAND - 1) / BAND;
    int small = N * C * OH * OW * R * S < 64 * 64 * 64;
#pragma omp parallel if (!small)
    {
#pragma omp for schedule(static, 1) nowait
        for (int64_t b = 0; b < N * C * bands; b++) {
            int64_t plane = b / bands, from = b % bands * BAND, to = min64(from + BAND, OH);
            const float *image = X + plane * H * W, *f = F + plane % C * R * S;
            float *y = Y + plane * OH * OW;
#if defined(__AVX512F__)
            if (R == 3 && S == 3 && PAD == 1 && STRIDE == 1) {
                if (STREAM && OW % 16 == 0)
                    band(image, f, y, from, to, H, W, 1);
                else
                    band(image, f, y, from, to, H, W, 0);
                continue;
            }
#endif
            for (int64_t i = from; i < to; i++)
                for (int64_t j = 0; j < OW; j++)
                    y[i * OW + j] = one(&sh, image, f, i, j);
        }
#if defined(__AVX512F__)
        _mm_sfence();
#endif
    }
}
