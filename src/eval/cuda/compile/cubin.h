/* eval/cuda/compile/cubin: what of a cubin's contents would live longer than one launch, read from
 * its ELF tables by the process that is about to load it. Nothing in the file is believed further
 * than its length. Any thread. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the compiler's helper writes behind a cubin whose code names no variable of its own. */
#define CUBIN_UNUSED "\ntwagent: no variable is used\n"

struct cubin {
    bool variables;   /* it uses __device__, __managed__, __constant__, or text to print */
    bool hidden;      /* one that inline assembly declares inside of a function */
    const char *heap; /* the symbol by which it uses the device's heap, static text; NULL: none */
};

/* -1: no ELF file of 64 bits, or one whose tables lie outside it. */
int cubin_read(const void *image, size_t bytes, struct cubin *cubin) MUST_USE;

/* What ptxas wrote down of a kernel; -1: nothing is said. A thread's. */
struct cubin_kernel {
    int64_t registers, stack_bytes;
};
struct cubin_kernel cubin_kernel(const void *image, size_t bytes, const char *entry);

/* The same for who would load it. ERR_UNSUPPORTED: what it is, or uses, is refused; the message is
 * the candidate's verdict. */
int cubin_loadable(const void *image, size_t bytes, struct cubin *cubin, struct err *err) MUST_USE;
