#include "eval/webgpu/library.h"

#include "base/file.h"
#include "process/toolchain.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *first(struct arena *arena, const char *pattern)
{
    glob_t found;
    const char *path = NULL;
    if (glob(pattern, 0, NULL, &found) == 0)
        path = arena_strdup(arena, found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return path;
}

const char *webgpu_library_find(struct arena *arena)
{
    const char *given = getenv("TWAGENT_WGPU"), *home = getenv("HOME"), *path = NULL;
    if (given != NULL)
        return given[0] == '/' && file_exists(given) ? given : NULL;
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64", "/usr/local/lib", "/usr/lib"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && path == NULL; i++)
        path = first(arena, arena_printf(arena, "%s/libwgpu_native.so*", folders[i]));
    const char *local = home != NULL ? arena_printf(arena, "%s/.local", home) : NULL;
    const char *const prefixes[] = {getenv("VIRTUAL_ENV"),
                                    getenv("CONDA_PREFIX"),
                                    tool_python_prefix(arena),
                                    local,
                                    "/usr/local",
                                    "/usr"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0] && path == NULL; i++)
        if (prefixes[i] != NULL)
            path = first(arena, arena_printf(arena,
                                             "%s/lib/python3*/*-packages/wgpu/resources/"
                                             "libwgpu_native*.so",
                                             prefixes[i]));
    return path;
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
