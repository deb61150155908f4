/* tests/unit/eval/rows: the operations that ship and are no sums of products alone, in float64, in
 * float32 as their definitions compute, and as honest kernels do. For the tests of eval/check. */
#ifndef TESTS_ROWS_H
#define TESTS_ROWS_H

#include "base/mem.h"
#include "sums.h"

struct rows { /* x[m, n]; attention: x is q[m, d], k and v are [n, d] */
    size_t m, n, d;
    const float *x, *gamma, *beta, *k, *v;
};

enum { DEFINITION, SEQUENTIAL, FAST, WAYS }; /* of computing in float32 */

static inline float add_pairs(const float *a, size_t count)
{
    static const float one = 1.0f;
    return sum_pairwise(a, &one, count, 0);
}

static inline float add_all(const float *a, size_t count, int way)
{
    static const float one = 1.0f;
    return way == SEQUENTIAL ? sum_sequential(a, &one, count, 0)
           : way == FAST     ? sum_lanes(a, &one, count, 0, 32)
                             : add_pairs(a, count);
}

/* As a GPU's: the argument is multiplied in float32, and the result two units off. */
static inline float exp_of(float x, int way)
{
    if (way != FAST)
        return expf(x);
    float fast = exp2f(x * 1.442695041f);
    return fast * (1.0f + 0x1p-23f);
}

static inline float inverse_root(float x, int way)
{
    return (way == FAST ? 1.0f + 0x1p-23f : 1.0f) / sqrtf(x);
}

/* ---- float64; what is divided by `row` at the end needs none of it ---- */

static inline void exact_softmax(const struct rows *r, double *out)
{
    for (size_t i = 0; i < r->m; i++) {
        const float *x = r->x + i * r->n;
        double most = x[0], sum = 0.0;
        for (size_t j = 0; j < r->n; j++)
            most = fmax(most, x[j]);
        for (size_t j = 0; j < r->n; j++)
            sum += out[i * r->n + j] = exp(x[j] - most);
        for (size_t j = 0; j < r->n; j++)
            out[i * r->n + j] /= sum;
    }
}

static inline void float_softmax(const struct rows *r, int way, float *out)
{
    for (size_t i = 0; i < r->m; i++) {
        const float *x = r->x + i * r->n;
        float most = x[0], sum = 0.0f, *y = out + i * r->n;
        for (size_t j = 0; j < r->n; j++)
            most = fmaxf(most, x[j]);
        float largest = x[0];
        for (size_t j = 0; j < r->n && way == SEQUENTIAL; j++) { /* online */
            float next = fmaxf(largest, x[j]);
            sum = sum * expf(largest - next) + expf(x[j] - next);
            largest = next;
        }
        for (size_t j = 0; j < r->n; j++)
            y[j] = exp_of(x[j] - most, way);
        sum = way == SEQUENTIAL ? sum : add_all(y, r->n, way);
        for (size_t j = 0; j < r->n; j++)
            y[j] = way == FAST ? y[j] * (1.0f / sum) : y[j] / sum;
    }
}

static inline void exact_rmsnorm(const struct rows *r, double *out)
{
    for (size_t i = 0; i < r->m; i++) {
        const float *x = r->x + i * r->n;
        double sum = 0.0;
        for (size_t j = 0; j < r->n; j++)
            sum += (double)x[j] * x[j];
        for (size_t j = 0; j < r->n; j++)
            out[i * r->n + j] = x[j] / sqrt(sum / (double)r->n + 1e-6) * r->gamma[j];
    }
}

static inline void float_rmsnorm(const struct rows *r, int way, float *out)
{
    for (size_t i = 0; i < r->m; i++) {
        const float *x = r->x + i * r->n;
        float *y = out + i * r->n;
        for (size_t j = 0; j < r->n; j++)
            y[j] = x[j] * x[j];
        float mean = add_all(y, r->n, way) / (float)r->n + 1e-6f;
        for (size_t j = 0; j < r->n; j++)
            y[j] = (way == DEFINITION ? x[j] / sqrtf(mean) : x[j] * inverse_root(mean, way)) *
                   r->gamma[j];
    }
}

static inline void exact_layernorm(const struct rows *r, double *out)
{
    for (size_t i = 0; i < r->m; i++) {
        const float *x = r->x + i * r->n;
        double mean = 0.0, squares = 0.0;
        for (size_t j = 0; j < r->n; j++)
            mean += (double)x[j] / (double)r->n;
        for (size_t j = 0; j < r->n; j++)
            squares += (x[j] - mean) * (x[j] - mean) / (double)r->n;
        for (size_t j = 0; j < r->n; j++)
            out[i * r->n + j] = (x[j] - mean) / sqrt(squares + 1e-5) * r->gamma[j] + r->beta[j];
    }
}

static inline void float_layernorm(const struct rows *r, int way, float *out)
{
    for (size_t i = 0; i < r->m; i++) {
        const float *x = r->x + i * r->n;
        float *y = out + i * r->n, mean = add_all(x, r->n, way) / (float)r->n;
        for (size_t j = 0; j < r->n; j++)
            y[j] = (x[j] - mean) * (x[j] - mean);
        float variance = add_all(y, r->n, way) / (float)r->n + 1e-5f;
        for (size_t j = 0; j < r->n; j++)
            y[j] = (way == DEFINITION ? (x[j] - mean) / sqrtf(variance)
                                      : (x[j] - mean) * inverse_root(variance, way)) *
                       r->gamma[j] +
                   r->beta[j];
    }
}

static inline void exact_attention(const struct rows *r, double *out)
{
    double *w = (double *)mem_array(r->n, sizeof *w);
    for (size_t i = 0; i < r->m; i++) {
        double most = -INFINITY, sum = 0.0;
        for (size_t j = 0; j < r->n; j++) {
            w[j] = 0.0;
            for (size_t c = 0; c < r->d; c++)
                w[j] += (double)r->x[i * r->d + c] * r->k[j * r->d + c];
            w[j] /= sqrt((double)r->d);
            most = fmax(most, w[j]);
        }
        for (size_t j = 0; j < r->n; j++)
            sum += w[j] = exp(w[j] - most);
        for (size_t c = 0; c < r->d; c++) {
            double o = 0.0;
            for (size_t j = 0; j < r->n; j++)
                o += w[j] / sum * r->v[j * r->d + c];
            out[i * r->d + c] = o;
        }
    }
    mem_free(w);
}

static inline void float_attention(const struct rows *r, int way, float *out)
{
    sum_order *order = way == SEQUENTIAL ? sum_sequential : way == FAST ? sum_fused : sum_pairwise;
    float *w = (float *)mem_array(r->n, sizeof *w);
    for (size_t i = 0; i < r->m; i++) {
        float most = -INFINITY;
        for (size_t j = 0; j < r->n; j++) {
            w[j] = order(r->x + i * r->d, r->k + j * r->d, r->d, 1) / sqrtf((float)r->d);
            most = fmaxf(most, w[j]);
        }
        for (size_t j = 0; j < r->n; j++)
            w[j] = exp_of(w[j] - most, way);
        float sum = add_all(w, r->n, way);
        for (size_t j = 0; j < r->n && way == DEFINITION; j++)
            w[j] /= sum;
        for (size_t c = 0; c < r->d; c++) {
            float o = order(w, r->v + c, r->n, r->d);
            out[i * r->d + c] = way == DEFINITION ? o : o * (1.0f / sum);
        }
    }
    mem_free(w);
}

static inline void exact_relu(const struct rows *r, double *out)
{
    for (size_t i = 0; i < r->m * r->n; i++)
        out[i] = fmax(r->x[i], 0.0);
}

static inline void float_relu(const struct rows *r, int way, float *out)
{
    for (size_t i = 0; i < r->m * r->n; i++) {
        float x = r->x[i];
        out[i] = way == DEFINITION ? fmaxf(x, 0.0f) : 0.5f * (x + fabsf(x));
    }
}

static inline void exact_transpose(const struct rows *r, double *out)
{
    for (size_t i = 0; i < r->m * r->n; i++)
        out[i % r->n * r->m + i / r->n] = r->x[i];
}

static inline void float_transpose(const struct rows *r, int way, float *out)
{
    (void)way;
    for (size_t i = 0; i < r->m * r->n; i++)
        out[i % r->n * r->m + i / r->n] = r->x[i];
}

#endif
