/* eval/cpu/cpu: the CPU backend: C and C++ candidates, OpenMP, gcc and clang, native code in a
 * sandboxed runner. */
#ifndef EVAL_CPU_CPU_H
#define EVAL_CPU_CPU_H

#include "eval/backend.h"

extern const struct backend backend_cpu;

/* `twagent runner cpu`: the disposable process that holds one candidate. Descriptors: 3 control
 * page, 4 input region (read only), 5 output region, 6 go (eventfd), 7 done (eventfd), 8 the
 * artifact. Returns an exit code. */
int cpu_runner_main(int argc, char **argv);

/* `twagent sandbox [--profile P] [--read DIR]... [--write DIR]... [--limit K=V]... -- PROGRAM ARGS`:
 * takes every privilege away from itself, then becomes PROGRAM. For compilers, references and
 * disassemblers. Returns only on failure. */
int sandbox_main(int argc, char **argv);

#endif
