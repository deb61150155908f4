/* eval/webgpu/device: libwgpu_native opened, its adapters, and one of them as a device. No OpenGL:
 * its compute shaders are another implementation's. Runner processes only, since drivers run in
 * whoever opens them. */
#pragma once

#include "base/err.h"
#include "eval/webgpu/api.h"

#include <stdbool.h>

enum { ADAPTERS_MOST = 16, DEVICE_SAID_MOST = 1600 };

struct device {
    struct wgpu wgpu;
    wgpu_handle adapter, handle, queue;
    struct wgpu_adapter_info info;
    struct wgpu_limits limits;
    bool software; /* it computes on the CPU */
    bool f16, subgroups;
    double tick_ns; /* of its timestamps */
    bool lost;      /* of no use any more */
    int error;      /* WGPU_ERROR_*: the first since wgpu_watch() */
    char said[DEVICE_SAID_MOST];
};

/* ERR_ENVIRONMENT. `path`: of the library. */
int wgpu_open(struct wgpu *wgpu, const char *path, struct err *err) MUST_USE;
/* In the library's order; returns how many. */
size_t wgpu_adapters(const struct wgpu *wgpu, wgpu_handle adapters[ADAPTERS_MOST]);
/* device->wgpu is open. ERR_ENVIRONMENT where there is no such adapter, or it has no timestamps. */
int wgpu_device_open(struct device *device, int index, struct err *err) MUST_USE;

/* Where it computes on the CPU: how much more memory this process takes, beside so many bytes for
 * tensors. Drivers unroll what a shader says, and give up at no size. */
void wgpu_bound_memory(const struct device *device, uint64_t tensor_bytes);

/* What was asked of the device between the two went well; else device->error and device->said. */
void wgpu_watch(struct device *device);
bool wgpu_went_well(struct device *device);

struct wgpu_text wgpu_text(const char *text);

/* What fails here is told by wgpu_went_well(). */
wgpu_handle wgpu_buffer(const struct device *device, uint64_t usage, uint64_t bytes);
wgpu_handle wgpu_module(const struct device *device, const char *text, size_t length);
wgpu_handle wgpu_encoder(const struct device *device);
void wgpu_submit(const struct device *device, wgpu_handle encoder); /* and waits for it */
/* Until `unmap`; NULL: it cannot be mapped. */
const void *wgpu_map(const struct device *device, wgpu_handle buffer, size_t bytes);
