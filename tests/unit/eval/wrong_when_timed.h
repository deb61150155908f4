/* Products that are wrong at the timed shape alone, where samples have to show it. The includer has
 * M and N, the timed shape's, defined before. */
#pragma once

#include "one_session.h"

static const char product[] = "def reference(A, B):\n    return A @ B\n";

static bool is_timed(const struct fake_call *f)
{
    return f->m == M && f->n == N;
}

static void last_row(const struct fake_call *f)
{
    fake_product(f);
    for (int64_t j = 0; j < f->n && is_timed(f); j++)
        f->c[(f->m - 1) * f->n + j] *= 1.01f;
}

/* Samples seldom see them, a call whose every element is known does, but where a row of it is of
 * numbers that are not compared: NaN among them. */
static void few_elements(const struct fake_call *f)
{
    enum { FEW = 9 };
    fake_product(f);
    for (int64_t i = M / 2; i < M / 2 + FEW && is_timed(f); i++)
        f->c[i * f->n + N / 2] = 1e6f - f->c[i * f->n + N / 2];
}

static void rows_not_written(const struct fake_call *f)
{
    struct fake_call less = *f;
    less.m = is_timed(f) ? f->m - 3 : f->m;
    fake_product(&less);
}

static void upper_half(const struct fake_call *f)
{
    fake_product(f);
    for (int64_t i = f->m * f->n / 2; i < f->m * f->n && is_timed(f); i++)
        f->c[i] = f->c[i - f->m * f->n / 2];
}

static const struct fake_entry kernels[] = {
    {"product", fake_product},      {"last_row", last_row},
    {"few_elements", few_elements}, {"rows_not_written", rows_not_written},
    {"upper_half", upper_half},     {NULL, NULL}};
