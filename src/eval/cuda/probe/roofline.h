/* eval/cuda/probe/roofline: what a device can do, measured on it with loops of our own: the
 * ceilings that floors and shares of a roof are computed from. In a process that holds a context.
 */
#pragma once

#include "eval/cuda/driver/device.h"

enum roofline_unit { UNIT_FP32, UNIT_TF32, UNIT_BF16, UNIT_FP16, UNITS };

struct roofline {            /* the best of a few trials; 0: not known, or no such unit */
    double copy_bytes_per_s; /* read plus written */
    double read_bytes_per_s;
    double flops_per_s[UNITS];
};

/* Needs a current context. What cannot be measured stays 0; ERR_ENVIRONMENT where nothing can. */
int roofline_measure_gpu(const struct driver *driver, const struct device *device,
                         struct roofline *roofline, struct err *err) MUST_USE;
