/* tests/unit/eval/folder: a private folder with files in it, for the tests of problem loading. */
#pragma once

#include "base/file.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct folder {
    char path[64];
};

static inline void folder_make(struct folder *folder)
{
    snprintf(folder->path, sizeof folder->path, "/tmp/twagent-test-XXXXXX");
    if (mkdtemp(folder->path) == NULL)
        abort();
}

static inline void folder_put(const struct folder *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    unlink(path); /* a file that is cut and written again is flushed to disk by some systems */
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
}

static inline void folder_remove(struct folder *folder)
{
    struct err err;
    if (file_remove_tree(folder->path, &err) != 0)
        fprintf(stderr, "%s\n", err.message);
}

/* A small matmul in a folder of its own. */
static inline void fake_problem(struct folder *folder, const char *reference, const char *extra)
{
    char spec[4096];
    snprintf(spec, sizeof spec,
             "name: small\ndims: {M: 24, N: 20, K: 28}\n"
             "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
             "outputs: {C: {shape: [M, N], dtype: float32}}\n"
             "reference: ref_impl.py\nbaselines: {product: product.c}\nflops: 2*M*N*K\n"
             "check: [{M: 1, N: 1, K: 1}, {M: 13, N: 7, K: 5}]\n%s",
             extra);
    folder_make(folder);
    folder_put(folder, "spec.yaml", spec);
    folder_put(folder, "ref_impl.py", reference);
    folder_put(folder, "product.c", "product");
}
