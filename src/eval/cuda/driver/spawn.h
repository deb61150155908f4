/* eval/cuda/driver/spawn: children of the worker that open the driver: `twagent runner cuda ...`.
 */
#ifndef EVAL_CUDA_DRIVER_SPAWN_H
#define EVAL_CUDA_DRIVER_SPAWN_H

#include "base/err.h"

#include <sys/types.h>

/* runner_spawn(), devices counted as nvidia-smi counts them. */
int cuda_spawn(const char *const *argv, const int *sources, int count, pid_t *pid, int *pidfd,
               struct err *err) MUST_USE;

#endif
