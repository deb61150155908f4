/* eval/data/npy: arrays as numpy.save() writes them (NumPy's format, versions 1.0 to 3.0). What is
 * read is a stranger's. Plain values; any thread. */
#pragma once

#include "base/buf.h"
#include "eval/data/dtype.h"

enum { NPY_RANK_MAX = 32, NPY_HEADER_MOST = 1 << 16 };

struct npy {
    char descr[16]; /* "<f4"; of a structured type "?" */
    bool known;     /* `dtype` is one of ours, little-endian */
    enum dtype dtype;
    bool fortran;        /* column-major */
    size_t rank, offset; /* where the elements begin */
    int64_t extents[NPY_RANK_MAX];
};

/* `length` bytes of the file's beginning, NPY_HEADER_MOST + 16 or all. ERR_USAGE, "name: ...". */
int npy_parse(const char *name, const void *bytes, size_t length, struct npy *npy,
              struct err *err) MUST_USE;

/* All that stands before the elements of a row-major array. */
void npy_header(enum dtype dtype, size_t rank, const int64_t *extents, struct buf *out);
