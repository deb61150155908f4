/*---
workspace:
  line: {shape: [N * C, W + 2], dtype: float32}
tune:
  STREAM: [1]
  CHUNK: [4]
---*/
/* upsample_bilinear, r2-c8: no champion: too noisy to say whether r2-c8 is faster than reference
 * Compile: gcc -std=gnu17 -O3 -march=native -fopenmp -shared -fPIC (and the flags of its `compile`
 * key, if it has one). Call: kernel(inputs..., outputs..., workspaces..., dims...),
 * pointers to row-major tensors, dims as int64_t, in the order of the problem's spec.
 * Evaluate: twagent eval upsample_bilinear THIS_FILE */
#include <stddef.h>
#include <stdint.h>
#ifndef STREAM
#define STREAM 1
#endif
#ifndef CHUNK
#define CHUNK 4
#endif

/* Bilinear upsampling. Factor 2 with AVX-512: from two rows of the image come two rows of the
 * result; 16 numbers are blended downwards in a register, which two permutes spread to the 16
 * numbers of an output vector. */
#include <omp.h>
#include <stdint.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* Any factor: two rows of the image become a line in the workspace, and that a row of the result.
 */
static void plane_any(const float *restrict image, float *restrict y, float *restrict line,
                      int64_t H, int64_t W, int64_t S)
{
    for (int64_t i = 0; i < H * S; i++) {
        int64_t place = 2 * i + 1 - S < 0 ? 0 : 2 * i + 1 - S; /* twice S times the row */
        int64_t top = place / (2 * S), next = top + 1 < H ? top + 1 : H - 1;
        float down = (float)(place % (2 * S)) / (float)(2 * S);
        for (int64_t x = 0; x < W; x++)
            line[x + 1] = image[top * W + x] * (1 - down) + image[next * W + x] * down;
        line[0] = line[1];
        line[W + 1] = line[W];
        for (int64_t s = 0; s < S; s++) {
            float at = ((float)s + 0.5f) / (float)S - 0.5f;
            const float *from = at < 0 ? line : line + 1;
            float right = at < 0 ? at + 1 : at;
            for (int64_t x = 0; x < W; x++)
                y[i * W * S + x * S + s] = from[x] * (1 - right) + from[x + 1] * right;
        }
    }
}

#if defined(__AVX512F__)
enum { MOST = 64 }; /* output vectors in a row */

struct spread {
    int64_t base[MOST]; /* first column of the image that is loaded */
    __m512i own[MOST], other[MOST];
};

static void spread_fill(struct spread *s, int64_t W)
{
    for (int64_t v = 0; 16 * v < 2 * W; v++) {
        int64_t base = 8 * v - 1 < 0 ? 0 : 8 * v - 1;
        if (base > W - 16)
            base = W - 16;
        int32_t own[16], other[16];
        for (int l = 0; l < 16; l++) {
            int64_t x = 8 * v + l / 2, n = l % 2 ? x + 1 : x - 1;
            x = x < W ? x : W - 1;
            n = n < 0 ? 0 : n < W ? n : W - 1;
            own[l] = (int32_t)(x - base);
            other[l] = (int32_t)(n - base);
        }
        s->base[v] = base;
        s->own[v] = _mm512_loadu_si512(own);
        s->other[v] = _mm512_loadu_si512(other);
    }
}

static inline __m512 spread_out(__m512 line, __m512i own, __m512i other)
{
    return _mm512_fmadd_ps(
        _mm512_permutexvar_ps(own, line), _mm512_set1_ps(0.75f),
        _mm512_mul_ps(_mm512_permutexvar_ps(other, line), _mm512_set1_ps(0.25f)));
}

static inline void put(float *to, __m512 v, __mmask16 mask, int stream)
{
    if (stream)
        _mm512_stream_ps(to, v);
    else
        _mm512_mask_storeu_ps(to, mask, v);
}

static inline void rows(const float *a, const float *b, float *first, float *second, int64_t W,
                        const struct spread *s, const int stream)
{
    const __m512 near = _mm512_set1_ps(0.75f), far = _mm512_set1_ps(0.25f);
    int64_t OW = 2 * W;
    for (int64_t v = 0; 16 * v < OW; v++) {
        __m512 up = _mm512_loadu_ps(a + s->base[v]), low = _mm512_loadu_ps(b + s->base[v]);
        __mmask16 mask =
            OW - 16 * v < 16 ? (__mmask16)((1u << (OW - 16 * v)) - 1) : (__mmask16)0xffff;
        if (first)
            put(first + 16 * v,
                spread_out(_mm512_fmadd_ps(up, near, _mm512_mul_ps(low, far)), s->own[v],
                           s->other[v]),
                mask, stream);
        if (second)
            put(second + 16 * v,
                spread_out(_mm512_fmadd_ps(low, near, _mm512_mul_ps(up, far)), s->own[v],
                           s->other[v]),
                mask, stream);
    }
}

static inline void plane_two(const float *image, float *y, int64_t H, int64_t W,
                             const struct spread *s, const int stream)
{
    int64_t OW = 2 * W;
    rows(image, image, 0, y, W, s, stream);
    for (int64_t k = 0; k + 1 < H; k++)
        rows(image + k * W, image + (k + 1) * W, y + (2 * k + 1) * OW, y + (2 * k + 2) * OW, W, s,
             stream);
    rows(image + (H - 1) * W, image + (H - 1) * W, y + (2 * H - 1) * OW, 0, W, s, stream);
}
#endif

void kernel(const float *X, float *Y, float *line, int64_t N, int64_t C, int64_t H, int64_t W,
            int64_t S, int64_t OH, int64_t OW)
{
    int small = N * C * OH * OW < 16384;
    int64_t planes = N * C;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads();
        int64_t share = CHUNK ? CHUNK : (planes + threads - 1) / threads;
#if defined(__AVX512F__)
        struct spread s;
        int two = S == 2 && W >= 16 && 2 * W <= 16 * MOST;
        if (two)
            spread_fill(&s, W);
#endif
#pragma omp for schedule(dynamic, share) nowait
        for (int64_t p = 0; p < planes; p++) {
            const float *image = X + p * H * W;
            float *y = Y + p * OH * OW;
#if defined(__AVX512F__)
            if (two) {
                if (STREAM && OW % 16 == 0)
                    plane_two(image, y, H, W, &s, 1);
                else
                    plane_two(image, y, H, W, &s, 0);
                continue;
            }
#endif
            plane_any(image, y, line + p * (W + 2), H, W, S);
        }
#if defined(__AVX512F__)
        _mm_sfence();
#endif
    }
}
