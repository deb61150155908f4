/* eval/webgpu/library: where libwgpu_native lies, and what a process that opens it is given. Any
 * thread. */
#pragma once

#include "base/arena.h"

enum { WEBGPU_ENV_MOST = 251 };

#define WEBGPU_NO_LIBRARY                                                                          \
    "no libwgpu_native: pip install wgpu, or its path as TWAGENT_WGPU; and a Vulkan driver"

/* $TWAGENT_WGPU (a file), the loader's folders, a python's wheel of wgpu; NULL: nowhere. */
const char *webgpu_library_find(struct arena *arena);
/* Our environment with a folder that drivers look for. Returns env. */
const char *const *webgpu_environment(const char *env[WEBGPU_ENV_MOST]);
