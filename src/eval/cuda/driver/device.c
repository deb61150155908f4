#include "eval/cuda/driver/device.h"

#include <string.h>

int device_open(const struct driver *driver, int index, struct device *device, struct err *err)
{
    int count = 0;
    memset(device, 0, sizeof *device);
    cu_result result = driver->device_count(&count);
    if (result == 0 && index >= count)
        return err_set(err, ERR_ENVIRONMENT, "no GPU %d here: the driver shows %d", index, count);
    if (result == 0)
        result = driver->device_get(&device->handle, index);
    const struct {
        int attribute, *value;
    } attributes[] = {{CU_CAPABILITY_MAJOR, &device->major},
                      {CU_CAPABILITY_MINOR, &device->minor},
                      {CU_SM_COUNT, &device->sm_count},
                      {CU_WARP_SIZE, &device->warp_size},
                      {CU_L2_BYTES, &device->l2_bytes},
                      {CU_SHARED_BYTES_OPTIN, &device->shared_bytes_optin},
                      {CU_SHARED_BYTES_PER_SM, &device->shared_bytes_per_sm},
                      {CU_MAX_THREADS_PER_SM, &device->max_threads_per_sm},
                      {CU_REGISTERS_PER_SM, &device->registers_per_sm}};
    for (size_t i = 0; result == 0 && i < sizeof attributes / sizeof attributes[0]; i++)
        result =
            driver->device_attribute(attributes[i].value, attributes[i].attribute, device->handle);
    if (result != 0)
        return err_set(err, ERR_ENVIRONMENT, "GPU %d: %s", index, driver_error(driver, result));
    (void)driver->device_name(device->name, sizeof device->name, device->handle);
    (void)driver->device_pci(device->pci, sizeof device->pci, device->handle);
    (void)driver->device_memory(&device->memory_bytes, device->handle);
    (void)driver->version(&device->driver_version);
    return 0;
}

const char *device_arch(struct arena *arena, const struct lane_facts *lane)
{
    struct names facts = lane->facts;
    int64_t capability = 90;
    (void)expr_lookup_names(&facts, "compute_capability", &capability);
    return arena_printf(arena, "sm_%d%s", (int)capability, capability >= 90 ? "a" : "");
}
