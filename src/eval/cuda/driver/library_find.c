/* Where a library of the toolkit's lies: what a person says comes first, then a toolkit, then the
 * loader's folders, then the wheels that a python has. */
#include "eval/cuda/driver/library_find.h"

#include "base/file.h"
#include "process/toolchain.h"

#include <stdlib.h>
#include <string.h>

static const char *in_folder(struct arena *arena, const char *folder, const char *stem)
{
    if (folder == NULL || folder[0] != '/')
        return NULL;
    return tool_newest(arena, arena_printf(arena, "%s/%s.so*", folder, stem));
}

static const char *in_root(struct arena *arena, const char *root, const char *stem)
{
    static const char *const places[] = {"lib64", "lib", "extras/CUPTI/lib64",
                                         "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};
    const char *path = NULL;
    for (size_t i = 0; root != NULL && path == NULL && i < sizeof places / sizeof places[0]; i++)
        path = in_folder(arena, arena_printf(arena, "%s/%s", root, places[i]), stem);
    return path;
}

static const char *in_list(struct arena *arena, const char *list, const char *stem)
{
    const char *path = NULL;
    while (list != NULL && *list != '\0' && path == NULL) {
        size_t length = strcspn(list, ":");
        path = in_folder(arena, arena_strndup(arena, list, length), stem);
        list += length + (list[length] == ':');
    }
    return path;
}

const char *cuda_library_find(struct arena *arena, const char *variable, const char *stem)
{
    const char *given = getenv(variable), *path = NULL;
    if (given != NULL)
        return given[0] == '/' && file_exists(given) ? given : NULL;
    const char *other = tool_newest(arena, "/usr/local/cuda-*");
    const char *const roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda", other,
                                 "/opt/cuda"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0] && path == NULL; i++)
        path = in_root(arena, roots[i], stem);
    if (path == NULL)
        path = in_list(arena, getenv("LD_LIBRARY_PATH"), stem);
    if (path == NULL)
        path = in_list(arena,
                       "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:"
                       "/usr/local/lib:/usr/lib",
                       stem);
    /* PREFIX/lib/python3.N/site-packages/nvidia/cuda_nvrtc/lib, or nvidia/cu13/lib. */
    return path != NULL ? path
                        : tool_wheel(arena, arena_printf(arena, "nvidia/*/lib/%s.so.*", stem));
}
