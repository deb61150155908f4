/* eval/webgpu/emit: a WGSL kernel as an ES module, and as a page that runs it in a browser. */
#pragma once

#include "eval/emit/emit.h"

extern const struct emitter emitter_webgpu;
