/* eval/cpu/compile: builds and their diagnostics. `cpu_ready`, `cpu_build` and `cpu_diagnostics`
 * stand in eval/backend/backend.h's table, which has their contracts. Any thread. */
#pragma once

#include "eval/backend/backend.h"

int cpu_ready(struct err *err) MUST_USE;

int cpu_build(struct arena *arena, const struct lane_facts *lane, const struct problem *problem,
              const struct candidate *candidate, const struct names *tune,
              const struct baseline_spec *baseline, enum build_flavour flavour, const char *folder,
              struct build *build, struct err *err) MUST_USE;

/* At most about 3 KB. Compilers are told to quote nothing; the lines quoted here come from the
 * candidate's own text, so that nothing else can. */
void cpu_diagnostics(const struct candidate *candidate, const char *text, size_t length,
                     struct buf *out);

/* Path of the compiler driver for "gcc", "clang" or NULL (the default); NULL: not installed.
 * *clang says which kind it is. */
const char *compile_driver(const char *compiler, bool cplusplus, bool *clang);
