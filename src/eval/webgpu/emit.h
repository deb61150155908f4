/* eval/webgpu/emit: a WGSL kernel as a folder: the kernel and its plan. */
#pragma once

#include "eval/emit/emit.h"

extern const struct emitter emitter_webgpu;
