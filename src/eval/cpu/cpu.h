/* eval/cpu/cpu: the CPU backend: C and C++ candidates, OpenMP, gcc and clang, native code in a
 * sandboxed runner. */
#pragma once

#include "eval/backend/backend.h"

extern const struct backend backend_cpu;

/* `twagent runner cpu`: the disposable process that holds one candidate. Descriptors: 3 control
 * page, 4 input region (read only), 5 output region, 6 go (eventfd), 7 done (eventfd), 8 the
 * artifact. Returns an exit code. */
int cpu_runner_main(int argc, char **argv);

/* open() keeps spare runners warm for the region it was last called with. They hold its memory:
 * call this when a region is closed for good. Measuring thread. */
void cpu_runner_discard_spares(void);

/* One call of a BUILD_PORTABLE, which any x86-64 with AVX2 runs, under cachegrind, on one thread,
 * some fifty times slower than otherwise: for a small shape. Adds "cachegrind": {instructions,
 * data_references, l1_data_misses, last_level_data_misses, branches, branch_mispredictions} to an
 * open JSON object. ERR_UNSUPPORTED without valgrind; ERR_CHILD, ERR_TIMEOUT. */
int cpu_cachegrind(const struct lane_facts *lane, const struct region *region, const char *artifact,
                   const struct call *call, struct json *json, struct err *err) MUST_USE;
