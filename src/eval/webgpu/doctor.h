/* eval/webgpu/doctor: what this machine has for the backend, and what it lacks. */
#pragma once

#include "base/buf.h"
#include "base/value.h"

void webgpu_describe(void);
int webgpu_findings(const struct value *answer, struct buf *out);
