/* eval/cuda/driver/spawn: children that open the driver: `twagent runner cuda ...`. */
#pragma once

enum { CUDA_ENV_MOST = 251 };

/* Our environment with devices counted as nvidia-smi counts them, and modules on the device once
 * they are loaded. Returns env. */
const char *const *cuda_environment(const char *env[CUDA_ENV_MOST]);
