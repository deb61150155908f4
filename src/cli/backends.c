/* The table of backends, alone in its file: a program with another one has its own. */
#include "cli/backends.h"

#include "cli/emit.h"
#include "cli/eval_compile.h"
#include "eval/cpu/cpu.h"
#include "eval/cuda/cuda.h"

const struct program_backend backends[] = {
    {&backend_cpu, &emitter_cpu, NULL},
    {&backend_cuda, &emitter_cuda, eval_compile},
    {NULL, NULL, NULL},
};
