/* eval/cuda/compile/ptx: whether the code of a PTX module names any of its variables. NVRTC keeps
 * every variable of the headers that a source includes (cooperative_groups.h and CCCL's have a
 * thousand), used or not, where nvcc drops what is not.
 * https://docs.nvidia.com/cuda/parallel-thread-execution. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* In doubt, as where it has no end, it does. */
bool ptx_uses_variables(const char *text, size_t length);
