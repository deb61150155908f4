/*---
workspace:
  line: {shape: [N * C, W + 2], dtype: float32}
tune:
  STREAM: [1]
  AHEAD: [512]
  CHUNK: [4]
  KNOWN: [1]
---*/
/* upsample_bilinear, r1-c2: 30x reference (95 %: 7 to 4100), not verified
 * Compile: gcc -std=gnu17 -O3 -march=native -fopenmp -shared -fPIC (and the flags of its `compile`
 * key, if it has one). Call: kernel(inputs..., outputs..., workspaces..., dims...),
 * pointers to row-major tensors, dims as int64_t, in the order of the problem's spec.
 * Evaluate: twagent eval upsample_bilinear THIS_FILE */
#include <stddef.h>
#include <stdint.h>
#ifndef STREAM
#define STREAM 1
#endif
#ifndef AHEAD
#define AHEAD 512
#endif
#ifndef CHUNK
#define CHUNK 4
#endif
#ifndef KNOWN
#define KNOWN 1
#endif

/* Bilinear upsampling. By a factor of 2 each row of the image is stretched once, 64 columns at a
 * time, even and odd columns interleaved by permutes; two neighbouring ones make two rows of the
 * result, which are whole lines and are stored past the caches (STREAM). AHEAD: numbers to fetch
 * ahead. Other factors: two rows of the image become a line, and that a row of the result, a
 * remainder of its columns at a time. Threads take one share of the planes (CHUNK 0), or CHUNK
 * planes as they become free. */
#include <omp.h>
#include <stdint.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* A row of the result from the line with a number more on each side. */
static void stretch(const float *restrict line, float *restrict y, int64_t W, const int64_t S)
{
    for (int64_t s = 0; s < S; s++) {
        float place = ((float)s + 0.5f) / (float)S - 0.5f;
        const float *from = place < 0 ? line - 1 : line;
        float right = place < 0 ? place + 1 : place;
        for (int64_t x = 0; x < W; x++)
            y[x * S + s] = from[x] * (1 - right) + from[x + 1] * right;
    }
}

static void plane(const float *restrict image, float *restrict y, float *restrict line, int64_t H,
                  int64_t W, int64_t S)
{
    for (int64_t i = 0; i < H * S; i++) {
        int64_t place = 2 * i + 1 - S < 0 ? 0 : 2 * i + 1 - S; /* twice S times the row */
        int64_t top = place / (2 * S), next = top + 1 < H ? top + 1 : H - 1;
        float down = (float)(place % (2 * S)) / (float)(2 * S);
        for (int64_t x = 0; x < W; x++)
            line[x + 1] = image[top * W + x] * (1 - down) + image[next * W + x] * down;
        line[0] = line[1];
        line[W + 1] = line[W];
        if (KNOWN && S == 2)
            stretch(line + 1, y + i * W * S, W, 2);
        else if (KNOWN && S == 4)
            stretch(line + 1, y + i * W * S, W, 4);
        else
            stretch(line + 1, y + i * W * S, W, S);
    }
}

#if defined(__AVX512F__)
enum { BLOCK = 64, VECTORS = 2 * BLOCK / 16 };

static inline __mmask16 lanes(int64_t count)
{
    return count >= 16 ? 0xffff : count <= 0 ? 0 : (__mmask16)((1u << count) - 1);
}

/* 16 columns from j on, or what is left of them, as 32 of the result. */
static inline void widen(const float *row, int64_t j, int64_t W, __m512 *low, __m512 *high)
{
    const __m512i first = _mm512_setr_epi32(0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
    const __m512i lower = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i upper =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    const __m512 quarter = _mm512_set1_ps(0.25f), three = _mm512_set1_ps(0.75f);
    __mmask16 mask = lanes(W - j);
    __m512 v = _mm512_maskz_loadu_ps(mask, row + j);
    __m512 left =
        j > 0 ? _mm512_maskz_loadu_ps(mask, row + j - 1) : _mm512_permutexvar_ps(first, v);
    __m512 right = _mm512_mask_loadu_ps(v, lanes(W - j - 1), row + j + 1);
    __m512 middle = _mm512_mul_ps(v, three);
    __m512 even = _mm512_fmadd_ps(left, quarter, middle);
    __m512 odd = _mm512_fmadd_ps(right, quarter, middle);
    *low = _mm512_permutex2var_ps(even, lower, odd);
    *high = _mm512_permutex2var_ps(even, upper, odd);
}

static inline void put(float *to, __m512 v, int64_t count, const int whole)
{
    if (whole && count >= 16) {
        if (STREAM)
            _mm512_stream_ps(to, v);
        else
            _mm512_storeu_ps(to, v);
    } else if (count > 0) {
        _mm512_mask_storeu_ps(to, lanes(count), v);
    }
}

/* Columns [from, from + BLOCK) of the image, or what is left of them. */
static inline void block(const float *image, float *y, int64_t H, int64_t W, int64_t from,
                         const int whole)
{
    const __m512 quarter = _mm512_set1_ps(0.25f), three = _mm512_set1_ps(0.75f);
    __m512 last[VECTORS];
    int64_t to = from + BLOCK < W ? from + BLOCK : W, OW = 2 * W;
    for (int64_t j = from, k = 0; j < to; j += 16, k += 2) {
        widen(image, j, W, last + k, last + k + 1);
        put(y + 2 * j, last[k], OW - 2 * j, whole);
        put(y + 2 * j + 16, last[k + 1], OW - 2 * j - 16, whole);
    }
    for (int64_t i = 1; i < H; i++) {
        const float *row = image + i * W;
        float *above = y + (2 * i - 1) * OW, *below = above + OW;
        for (int64_t j = from, k = 0; j < to; j += 16, k += 2) {
            __m512 low, high;
            if (AHEAD)
                __builtin_prefetch(row + j + AHEAD);
            widen(row, j, W, &low, &high);
            __m512 a = _mm512_fmadd_ps(low, quarter, _mm512_mul_ps(last[k], three));
            __m512 b = _mm512_fmadd_ps(high, quarter, _mm512_mul_ps(last[k + 1], three));
            __m512 c = _mm512_fmadd_ps(low, three, _mm512_mul_ps(last[k], quarter));
            __m512 d = _mm512_fmadd_ps(high, three, _mm512_mul_ps(last[k + 1], quarter));
            int64_t left = OW - 2 * j;
            put(above + 2 * j, a, left, whole);
            put(above + 2 * j + 16, b, left - 16, whole);
            put(below + 2 * j, c, left, whole);
            put(below + 2 * j + 16, d, left - 16, whole);
            last[k] = low;
            last[k + 1] = high;
        }
    }
    for (int64_t j = from, k = 0; j < to; j += 16, k += 2) {
        float *end = y + (2 * H - 1) * OW + 2 * j;
        put(end, last[k], OW - 2 * j, whole);
        put(end + 16, last[k + 1], OW - 2 * j - 16, whole);
    }
}

static void doubled(const float *image, float *y, int64_t H, int64_t W)
{
    int whole = W % 8 == 0 && ((uintptr_t)y & 63) == 0;
    for (int64_t from = 0; from < W; from += BLOCK)
        if (whole)
            block(image, y, H, W, from, 1);
        else
            block(image, y, H, W, from, 0);
}
#endif

static void one(const float *image, float *y, float *line, int64_t H, int64_t W, int64_t S)
{
#if defined(__AVX512F__)
    if (S == 2) {
        doubled(image, y, H, W);
        return;
    }
#endif
    plane(image, y, line, H, W, S);
}

void kernel(const float *X, float *Y, float *line, int64_t N, int64_t C, int64_t H, int64_t W,
            int64_t S, int64_t OH, int64_t OW)
{
    int small = N * C * OH * OW < 16384;
#pragma omp parallel if (!small)
    {
        int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t from = N * C * thread / threads, to = N * C * (thread + 1) / threads;
        float *own = line + from * (W + 2); /* the line of a thread's first plane serves for all */
        if (CHUNK == 0) {
            for (int64_t p = from; p < to; p++)
                one(X + p * H * W, Y + p * OH * OW, own, H, W, S);
        } else {
            int64_t chunk = CHUNK ? CHUNK : 1;
#pragma omp for schedule(dynamic, chunk) nowait
            for (int64_t p = 0; p < N * C; p++)
                one(X + p * H * W, Y + p * OH * OW, line + p * (W + 2), H, W, S);
        }
#if STREAM && defined(__AVX512F__)
        _mm_sfence();
#endif
    }
}
