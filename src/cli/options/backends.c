/* The table of backends, alone in its file: a program with another one has its own. */
#include "cli/options/backends.h"

#include "eval/cpu/cpu.h"
#include "eval/cuda/cuda.h"
#include "eval/webgpu/webgpu.h"

const struct backend *const backends[] = {&backend_cpu, &backend_cuda, &backend_webgpu, NULL};
