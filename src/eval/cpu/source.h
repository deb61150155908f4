/* eval/cpu/source: the texts that a compiler reads: the candidate's own between a prologue (the
 * exact prototype, tune numbers) and a shim that a runner calls, and the program around a sanitized
 * build. Any thread. */
#pragma once

#include "base/buf.h"
#include "eval/candidate/candidate.h"

struct source {
    const struct problem *problem;
    const struct candidate *candidate; /* NULL: a baseline */
    const struct names *tune;          /* NULL: none */
    const char *name;                  /* "candidate.c", for messages */
    const char *text;
    size_t length;
    bool cplusplus;
};

/* "void kernel(const float *A, float *C, int64_t M)", as the author should have written it. */
void source_signature(const struct problem *problem, const struct candidate *candidate,
                      struct buf *out);

/* One translation unit: prologue, source, shim. Line numbers are the source's own. */
void source_unit(const struct source *source, struct buf *out);

/* main() of a sanitized build: descriptors 3 (numbers), 4 (inputs), 5 (outputs); every tensor in a
 * heap block of exactly its size; one call; outputs copied back. Numbers: uint64_t, first
 * CALL_POINTERS_MAX offsets, then DIMS_MAX dims, then the exit code that says that it went to its
 * end: not 0, so that a candidate that leaves early is found out. */
void source_harness(const struct source *source, struct buf *out);
