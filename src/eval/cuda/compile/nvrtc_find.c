/* NVRTC is looked for as all of the toolkit is; its headers are those of the same place where it
 * has any. */
#include "eval/cuda/compile/nvrtc.h"

#include "base/file.h"
#include "eval/cuda/driver/library_find.h"

#include <stdlib.h>
#include <string.h>

static bool has(struct arena *arena, const char *folder, const char *name)
{
    return file_exists(arena_printf(arena, "%s/%s", folder, name));
}

static void find_headers(struct arena *arena, const char *folder, struct cuda_compiler *compiler)
{
    const char *home = getenv("CUDA_HOME");
    const char *const places[] = {
        arena_printf(arena, "%s/../include", folder),
        arena_printf(arena, "%s/../../cuda_runtime/include", folder), /* wheels before 13 */
        home != NULL ? arena_printf(arena, "%s/include", home) : NULL,
        "/usr/local/cuda/include",
        "/usr/include",
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !compiler->includes; i++)
        if (places[i] != NULL && has(arena, places[i], "cuda_fp16.h"))
            compiler->includes = places[i];
    const char *const more[] = {
        compiler->includes != NULL ? arena_printf(arena, "%s/cccl", compiler->includes) : NULL,
        arena_printf(arena, "%s/../../cuda_cccl/include", folder),
        compiler->includes, /* toolkits before 13 */
    };
    for (size_t i = 0; i < sizeof more / sizeof more[0] && !compiler->cccl; i++)
        if (more[i] != NULL && has(arena, more[i], "cub/block"))
            compiler->cccl = more[i];
}

/* Without links and "..", since Landlock's rules are for what lies there. */
static const char *resolved(struct arena *arena, const char *path)
{
    char *real = path != NULL ? realpath(path, NULL) : NULL;
    const char *kept = real != NULL ? arena_strdup(arena, real) : NULL;
    free(real);
    return kept;
}

int nvrtc_find(struct arena *arena, struct cuda_compiler *compiler, struct err *err)
{
    *compiler = (struct cuda_compiler){0};
    compiler->library = resolved(arena, cuda_library_find(arena, "TWAGENT_NVRTC", "libnvrtc"));
    if (compiler->library == NULL)
        return err_set(err, ERR_ENVIRONMENT,
                       "no NVRTC found: neither $TWAGENT_NVRTC nor $CUDA_HOME nor /usr/local/cuda "
                       "nor a python's wheels have libnvrtc.so");
    const char *slash = strrchr(compiler->library, '/');
    const char *folder =
        arena_strndup(arena, compiler->library, (size_t)(slash - compiler->library));
    find_headers(arena, folder, compiler);
    compiler->includes = resolved(arena, compiler->includes);
    compiler->cccl = resolved(arena, compiler->cccl);
    return 0;
}
