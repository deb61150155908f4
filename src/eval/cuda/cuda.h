/* eval/cuda/cuda: the CUDA backend: device code and a launch plan, NVRTC, the driver API, one
 * disposable runner a candidate. No CUDA library is linked; each is opened where it is used. */
#pragma once

#include "eval/backend/backend.h"

extern const struct backend backend_cuda;

/* `twagent runner cuda ...`: the process that holds a CUDA context and one candidate's module.
 * Returns an exit code. */
int cuda_runner_main(int argc, char **argv);
