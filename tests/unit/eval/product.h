/* tests/unit/eval/product: a matrix product with its bound, for the tests of eval/check. */
#pragma once

#include "base/mem.h"
#include "eval/check/check.h"
#include "eval/data/draw.h"
#include "sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include <cmocka.h>

static const struct problem float32_problem = {.precision = "float32"};
static const struct problem strict_problem = {.precision = "float32", .strict = true};

static inline struct tensor_spec tensor_of(enum dtype dtype, size_t rank)
{
    return (struct tensor_spec){.name = "C", .dtype = dtype, .rank = rank};
}

/* Each row a number over and over: a running sum of it rounds the same way each time. From about
 * 10,000 terms on its error is that of tf32 inputs, and no bound tells the two apart. */
#define EQUAL_TERMS DISTRIBUTIONS

#define TERMS(count, are_alike) (&(const struct sum){.terms = (count), .alike = (are_alike)})

/* One product: C[M, N] = A[M, K] B[K, N], with A and B drawn. */
struct product {
    size_t m, n, k;
    bool strict;
    float *a, *b, *lower_a, *lower_b, *honest, *lower;
    double *exact;
    struct bound bound;
};

static inline void multiply(const struct product *p, const float *a, const float *b,
                            sum_order *order, float *out)
{
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++)
            out[i * p->n + j] = order(a + i * p->k, b + j, p->k, p->n);
}

static inline void product_make(struct product *p, enum distribution distribution, uint64_t seed,
                                sum_order *honest, bool ones_b)
{
    size_t a_count = p->m * p->k, b_count = p->k * p->n, count = p->m * p->n;
    struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 2);
    p->a = (float *)mem_array(a_count, sizeof(float));
    p->b = (float *)mem_array(b_count, sizeof(float));
    p->lower_a = (float *)mem_array(a_count, sizeof(float));
    p->lower_b = (float *)mem_array(b_count, sizeof(float));
    p->honest = (float *)mem_array(count, sizeof(float));
    p->lower = (float *)mem_array(count, sizeof(float));
    p->exact = (double *)mem_array(count, sizeof(double));
    if (distribution == EQUAL_TERMS)
        for (size_t i = 0; i < p->m; i++)
            for (size_t j = 0; j < p->k; j++)
                p->a[i * p->k + j] = 0.1f + (float)i * 1e-4f;
    else
        draw_fill(distribution, seed, DTYPE_FLOAT32, a_count,
                  distribution == DRAW_FEW ? p->k / FEW_DRAWN + 1 : p->k, 1, -1, p->a);
    enum distribution plain = distribution == DRAW_FEW ? DRAW_NORMAL : distribution;
    draw_fill(ones_b ? DRAW_ONES : plain, seed + 1, DTYPE_FLOAT32, b_count, p->n, 1, -1, p->b);
    for (size_t i = 0; i < a_count; i++)
        p->lower_a[i] = round_to_bits(p->a[i], 10);
    for (size_t i = 0; i < b_count; i++)
        p->lower_b[i] = round_to_bits(p->b[i], 10);
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++)
            p->exact[i * p->n + j] = sum_exact(p->a + i * p->k, p->b + j, p->k, p->n);
    multiply(p, p->a, p->b, honest, p->honest);
    multiply(p, p->lower_a, p->lower_b, honest, p->lower);
    bool alike = distribution == EQUAL_TERMS || distribution_is_alike(distribution);
    const struct sum *sum = distribution == DRAW_FEW
                                ? TERMS(p->strict ? FEW_TERMS_STRICT : FEW_TERMS, false)
                                : TERMS(p->k, alike);
    bound_derive(p->strict ? &strict_problem : &float32_problem, &output, count, p->n, sum,
                 p->exact, p->honest, p->lower, &p->bound);
}

static inline void product_free(struct product *p)
{
    void *const all[] = {p->a, p->b, p->lower_a, p->lower_b, p->honest, p->lower, p->exact};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        mem_free(all[i]);
}

static inline bool product_passes(const struct product *p, const float *got, const char *what)
{
    struct tensor_spec output = tensor_of(DTYPE_FLOAT32, 2);
    int64_t extents[RANK_MAX] = {(int64_t)p->m, (int64_t)p->n};
    struct mismatch mismatch;
    struct buf text;
    check_output(&output, extents, p->m * p->n, &p->bound, p->exact, got, &mismatch);
    buf_init(&text, 512);
    mismatch_describe(&output, extents, &mismatch, &text);
    if (!mismatch.passed && what != NULL)
        print_message("%s: %s; ratio %g, norm ratio %g\n", what, buf_text(&text),
                      mismatch.worst_ratio, mismatch.norm_ratio);
    buf_free(&text);
    return mismatch.passed;
}

static inline void rounded_product(struct product *p, unsigned bits, bool cut, sum_order *order,
                                   float *to)
{
    for (size_t i = 0; i < p->m * p->k; i++)
        p->lower_a[i] = cut ? cut_to_bits(p->a[i], bits) : round_to_bits(p->a[i], bits);
    for (size_t i = 0; i < p->k * p->n; i++)
        p->lower_b[i] = cut ? cut_to_bits(p->b[i], bits) : round_to_bits(p->b[i], bits);
    multiply(p, p->lower_a, p->lower_b, order, to);
}
