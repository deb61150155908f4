/* In place of src/cli/options/backends.c: a program with one backend more. */
#include "cli/options/backends.h"

#include "eval/cpu/cpu.h"
#include "toy.h"

const struct program_backend backends[] = {
    {&backend_cpu, &emitter_cpu},
    {&backend_toy, &emitter_toy},
    {NULL, NULL},
};
