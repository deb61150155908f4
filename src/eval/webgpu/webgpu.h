/* eval/webgpu: the WebGPU backend: WGSL candidates on any adapter that Vulkan, Metal or D3D12 show,
 * timed by timestamps inside a runner of ours. docs/webgpu.md. */
#pragma once

#include "eval/backend/backend.h"

extern const struct backend backend_webgpu;

/* `twagent runner webgpu [probe N | compile N LIBRARY FILE]`: an exit code. */
int webgpu_runner_main(int argc, char **argv);
