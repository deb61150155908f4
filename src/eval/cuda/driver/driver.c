#include "eval/cuda/driver/driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const optional[] = {"cuTensorMapEncodeTiled", "cuCtxResetPersistingL2Cache",
                                       "cuFuncGetParamInfo"};

static bool may_lack(const char *symbol)
{
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
        if (strcmp(optional[i], symbol) == 0)
            return true;
    return false;
}

int driver_open(struct driver *driver, struct err *err)
{
    const char *given = getenv("TWAGENT_CUDA_DRIVER");
    const char *name = given != NULL && *given != '\0' ? given : "libcuda.so.1";
    memset(driver, 0, sizeof *driver);
    driver->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (driver->library == NULL)
        return err_set(err, ERR_ENVIRONMENT, "no NVIDIA driver here: %s", dlerror());
#define DRIVER_LOOK_UP(member, symbol, arguments)                                                  \
    *(void **)&driver->member = dlsym(driver->library, #symbol);                                   \
    if (driver->member == NULL && !may_lack(#symbol))                                              \
        return err_set(err, ERR_ENVIRONMENT, "%s has no %s: the driver is too old", name, #symbol);
    DRIVER_FUNCTIONS(DRIVER_LOOK_UP)
#undef DRIVER_LOOK_UP
    cu_result result = driver->init(0);
    if (result != 0)
        return err_set(err, ERR_ENVIRONMENT, "cuInit: %s", driver_error(driver, result));
    return 0;
}

const char *driver_error(const struct driver *driver, cu_result result)
{
    const char *name = NULL;
    if (driver->error_name == NULL || driver->error_name(result, &name) != 0 || name == NULL)
        return "an unknown error of CUDA's";
    return name;
}
