/* eval/cuda/profile_runner: a runner's answer to WIRE_PROFILE. Runner process only. */
#ifndef EVAL_CUDA_PROFILE_RUNNER_H
#define EVAL_CUDA_PROFILE_RUNNER_H

#include "eval/cuda/runner.h"

/* The plan of control->call, with the image that was loaded; fills report->profile. A fault of the
 * candidate's is report->status, as with a call. */
void profile_run(struct gpu_runner *runner);

#endif
