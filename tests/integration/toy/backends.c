/* In place of src/cli/options/backends.c: a program with one backend more. */
#include "cli/options/backends.h"

#include "eval/cpu/cpu.h"
#include "toy.h"

const struct backend *const backends[] = {&backend_cpu, &backend_toy, NULL};
