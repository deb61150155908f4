#include "eval/cuda/driver/spawn.h"

#include <string.h>
#include <unistd.h>

const char *const *cuda_environment(const char *env[CUDA_ENV_MOST])
{
    size_t count = 0;
    env[count++] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
    env[count++] = "CUDA_MODULE_LOADING=EAGER";
    for (char **entry = environ; *entry != NULL && count < CUDA_ENV_MOST - 1; entry++)
        if (strncmp(*entry, "CUDA_DEVICE_ORDER=", 18) != 0 &&
            strncmp(*entry, "CUDA_MODULE_LOADING=", 20) != 0)
            env[count++] = *entry;
    env[count] = NULL;
    return env;
}
