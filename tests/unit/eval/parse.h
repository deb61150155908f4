/* tests/unit/eval/parse: a problem made from text, for the tests of candidates and layouts. */
#pragma once

#include "eval/candidate/candidate.h"

#include "folder.h"

static const char parse_spec[] = "name: gemm\n"
                                 "dims: {M: 64, N: 48, K: 32, H: M / 2}\n"
                                 "inputs:\n"
                                 "  A: {shape: [M, K], dtype: float32}\n"
                                 "  B: {shape: [K, N], dtype: float64}\n"
                                 "outputs: {C: {shape: [M, N], dtype: float32}}\n"
                                 "reference: ref_impl.py\n";

static inline struct problem *parse_problem(const char *spec)
{
    struct folder folder;
    struct problem *problem = NULL;
    struct err err;
    folder_make(&folder);
    folder_put(&folder, "ref_impl.py", "def reference(A, B): return A @ B\n");
    folder_put(&folder, "spec.yaml", spec);
    if (problem_load(folder.path, &problem, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    folder_remove(&folder);
    return problem;
}
