/* eval/cuda/sanitize/runner: a runner around which compute-sanitizer is. Runner process only. */
#pragma once

#include "eval/cuda/run/runner.h"

/* Its whole life after the pages are mapped, from a first word on, before which it asks nothing of
 * the device: no memory, no kernels and no launches but the plan's.
 * Ends on WIRE_QUIT, and when who started the supervisor is gone. Returns an exit code. */
int sanitizer_runner(struct gpu_runner *runner);
