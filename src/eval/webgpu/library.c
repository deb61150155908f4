#include "eval/webgpu/library.h"

#include "base/file.h"
#include "process/toolchain.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *webgpu_library_find(struct arena *arena)
{
    const char *given = getenv("TWAGENT_WGPU"), *path = NULL;
    if (given != NULL)
        return given[0] == '/' && file_exists(given) ? given : NULL;
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64", "/usr/local/lib", "/usr/lib"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && path == NULL; i++)
        path = tool_newest(arena, arena_printf(arena, "%s/libwgpu_native.so*", folders[i]));
    return path != NULL ? path : tool_wheel(arena, "wgpu/resources/libwgpu_native*.so");
}

const char *const *webgpu_environment(const char *env[WEBGPU_ENV_MOST])
{
    size_t count = 0;
    env[count++] = "RUST_BACKTRACE=0";
    env[count++] = "XDG_RUNTIME_DIR=/tmp"; /* Mesa complains without one, and keeps nothing there */
    for (char **entry = environ; *entry != NULL && count < WEBGPU_ENV_MOST - 1; entry++)
        if (strncmp(*entry, "RUST_BACKTRACE=", 15) != 0 &&
            strncmp(*entry, "XDG_RUNTIME_DIR=", 16) != 0)
            env[count++] = *entry;
    env[count] = NULL;
    return env;
}
