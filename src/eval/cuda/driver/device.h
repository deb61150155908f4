/* eval/cuda/driver/device: what a GPU is, as its driver tells those who have opened it. */
#pragma once

#include "eval/backend/backend.h"
#include "eval/cuda/driver/driver.h"

struct device {
    cu_device handle;
    char name[128], pci[32]; /* "NVIDIA H200", "0000:1b:00.0" */
    int major, minor, sm_count, warp_size, l2_bytes, shared_bytes_optin, shared_bytes_per_sm;
    int max_threads_per_sm, registers_per_sm;
    int driver_version; /* 13000 */
    size_t memory_bytes;
};
/* Device `index` in the order of the PCI bus. ERR_ENVIRONMENT where there is none. */
int device_open(const struct driver *driver, int index, struct device *device,
                struct err *err) MUST_USE;

/* "sm_90a" for 9.0: the target whose code runs on this device alone and has all it can. */
const char *device_arch(struct arena *arena, const struct lane_facts *lane);
