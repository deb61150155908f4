/* The table of backends, alone in its file: a program with another one has its own. */
#include "cli/options/backends.h"

#include "cli/emit/emit.h"
#include "eval/cpu/cpu.h"
#include "eval/cuda/cuda.h"

const struct program_backend backends[] = {
    {&backend_cpu, &emitter_cpu},
    {&backend_cuda, &emitter_cuda},
    {NULL, NULL},
};
