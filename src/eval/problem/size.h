/* eval/problem/size: main shapes in place of a spec's `dims`: its `sizes`, by name, or any other.
 * A problem's path has one behind an '@': "matmul@cuda", "spec.yaml@M=64,N=8"; "@dims" is what
 * `dims` says. Any thread. */
#pragma once

#include "base/err.h"
#include "base/expr.h"

#include <stdbool.h>
#include <stddef.h>

enum { SIZES_MAX = 8 };

struct problem;

struct problem_sizes {
    size_t count;
    struct {
        const char *name; /* a backend's: what it is measured with unless told otherwise */
        struct names given;
    } items[SIZES_MAX];
};

bool problem_has_size(const struct problem *problem, const char *name);

/* The '@' before a size in `path`, or NULL. */
const char *problem_size_of(const char *path);

/* The main shape becomes that of `size`, which is added to the problem's file. ERR_USAGE */
int problem_resize(struct problem *problem, const char *size, struct err *err) MUST_USE;
