#include "eval/cuda/compile/nvrtc.h"

#include <dlfcn.h>
#include <string.h>

struct symbol {
    const char *name;
    size_t offset;
    bool optional;
};

#define SYMBOL(field, text)                                                                        \
    {                                                                                              \
        text, offsetof(struct nvrtc, field), false                                                 \
    }
#define OPTIONAL(field, text)                                                                      \
    {                                                                                              \
        text, offsetof(struct nvrtc, field), true                                                  \
    }

static const struct symbol symbols[] = {
    SYMBOL(version, "nvrtcVersion"),        SYMBOL(error_string, "nvrtcGetErrorString"),
    SYMBOL(create, "nvrtcCreateProgram"),   SYMBOL(destroy, "nvrtcDestroyProgram"),
    SYMBOL(compile, "nvrtcCompileProgram"), SYMBOL(log_size, "nvrtcGetProgramLogSize"),
    SYMBOL(log, "nvrtcGetProgramLog"),      SYMBOL(cubin_size, "nvrtcGetCUBINSize"),
    SYMBOL(cubin, "nvrtcGetCUBIN"),         OPTIONAL(ptx_size, "nvrtcGetPTXSize"),
    OPTIONAL(ptx, "nvrtcGetPTX"),           OPTIONAL(pch_heap, "nvrtcSetPCHHeapSize"),
};

int nvrtc_open(const char *library, struct nvrtc *nvrtc, struct err *err)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return err_set(err, ERR_ENVIRONMENT, "NVRTC: %s", dlerror());
    *nvrtc = (struct nvrtc){0};
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (address == NULL && !symbols[i].optional)
            return err_set(err, ERR_ENVIRONMENT, "NVRTC: %s has no %s", library, symbols[i].name);
        memcpy((char *)nvrtc + symbols[i].offset, &address, sizeof address);
    }
    if (nvrtc->version(&nvrtc->version_major, &nvrtc->version_minor) != NVRTC_OK)
        return err_set(err, ERR_ENVIRONMENT, "NVRTC: %s does not tell its version", library);
    return 0;
}
