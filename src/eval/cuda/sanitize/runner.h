/* eval/cuda/sanitize/runner: a runner around which compute-sanitizer is. Runner process only. */
#ifndef EVAL_CUDA_SANITIZE_RUNNER_H
#define EVAL_CUDA_SANITIZE_RUNNER_H

#include "eval/cuda/run/runner.h"

/* Its whole life after the pages are mapped: no memory, no kernels and no launches but the plan's.
 * Ends on WIRE_QUIT, and when who started the supervisor is gone. Returns an exit code. */
int sanitizer_runner(struct gpu_runner *runner);

#endif
