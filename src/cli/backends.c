#include "cli/backends.h"

#include "eval/cpu/cpu.h"
#include "eval/cuda/cuda.h"

#include <string.h>

static const struct backend *const backends[] = {
    &backend_cpu,
    &backend_cuda,
};

const struct backend *backends_find(const char *name)
{
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return NULL;
}
