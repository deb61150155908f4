/* eval/webgpu/target: what is written for WebGPU. */
#pragma once

#include "eval/problem/target.h"

extern const struct target target_webgpu;
