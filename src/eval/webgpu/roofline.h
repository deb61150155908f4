/* eval/webgpu/roofline: what an adapter can do, measured on it by shaders of our own and its own
 * timestamps: the ceilings that floors and shares of a roof are computed from. In a child, since a
 * driver runs in whoever opens it. */
#pragma once

#include "eval/webgpu/device.h"

struct roofline { /* the best of a few trials; 0: not known */
    double copy_bytes_per_s, read_bytes_per_s, flops_per_s;
};

/* ERR_ENVIRONMENT: the device refuses what it was asked. */
int webgpu_roofline(struct device *device, struct roofline *roofline, struct err *err) MUST_USE;
