/* eval/cuda/doctor: eval/backend/backend.h's describe and findings. Main thread. */
#pragma once

#include "base/buf.h"
#include "base/value.h"

void cuda_describe(void); /* each GPU's driver is asked in a short-lived process of its own */
int cuda_findings(const struct value *answer, struct buf *out);
