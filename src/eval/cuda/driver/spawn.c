#include "eval/cuda/driver/spawn.h"

#include "process/spawn.h"

#include <string.h>
#include <unistd.h>

enum { ENV_MOST = 250 };

/* Devices are counted as nvidia-smi counts them, and modules are on the device once loaded. */
static void environment(const char *env[ENV_MOST + 1])
{
    size_t count = 0;
    env[count++] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
    env[count++] = "CUDA_MODULE_LOADING=EAGER";
    for (char **entry = environ; *entry != NULL && count < ENV_MOST; entry++)
        if (strncmp(*entry, "CUDA_DEVICE_ORDER=", 18) != 0 &&
            strncmp(*entry, "CUDA_MODULE_LOADING=", 20) != 0)
            env[count++] = *entry;
    env[count] = NULL;
}

int cuda_spawn(const char *const *argv, const int *sources, int count, pid_t *pid, int *pidfd,
               struct err *err)
{
    const char *env[ENV_MOST + 1];
    environment(env);
    return runner_spawn(argv, env, NULL, sources, count, pid, pidfd, err);
}
