/* eval/lane/start: what the worker is started with. Its environment is an allow-list: a provider's
 * key has no business in it. */
#include "base/file.h"
#include "base/mem.h"
#include "eval/lane/private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAUNCHER_MOST = 48, ARGUMENTS_MOST = 64, ENVIRONMENT_MOST = 256 };

static const char *const passed_on[] = {"PATH=",
                                        "HOME=",
                                        "XDG_CACHE_HOME=",
                                        "USER=",
                                        "LOGNAME=",
                                        "LANG=",
                                        "LC_",
                                        "TMPDIR=",
                                        "TZ=",
                                        "VIRTUAL_ENV=",
                                        "TWAGENT_SELF=",
                                        "TWAGENT_LOCKS=",
                                        "CUDA_",
                                        "NVIDIA_",
                                        "LD_LIBRARY_PATH=",
                                        "TWAGENT_NVRTC=",
                                        "TWAGENT_TRITON_PYTHON=",
                                        "TWAGENT_CUDA_SERVER=",
                                        "TWAGENT_CUDA_CACHE=",
                                        "TWAGENT_CUDA_DRIVER=",
                                        "TWAGENT_CUPTI=",
                                        "TWAGENT_WGPU=",
                                        "VK_",
                                        "TWAGENT_COMPUTE_SANITIZER=",
                                        "TWAGENT_DATA=",
                                        "TWAGENT_TIMELINE=",
                                        "SLURM_",
                                        "SRUN_",
                                        "KRB5",
                                        "SSH_AUTH_SOCK=",
                                        "ASAN_OPTIONS=",
                                        "UBSAN_OPTIONS=",
                                        "TSAN_OPTIONS=",
                                        "LSAN_OPTIONS="};

static const char *const *environment(struct arena *arena)
{
    const char **env = arena_array(arena, ENVIRONMENT_MOST + 1, sizeof *env);
    size_t count = 0;
    for (char **entry = environ; *entry != NULL && count < ENVIRONMENT_MOST; entry++)
        for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
            if (strncmp(*entry, passed_on[i], strlen(passed_on[i])) == 0) {
                env[count++] = arena_strdup(arena, *entry);
                break;
            }
    return env;
}

static const char *keep(struct arena *arena, const char *text)
{
    return text != NULL ? arena_strdup(arena, text) : NULL;
}

int lane_prepare(struct lane *lane, const struct lane_spec *spec, struct err *err)
{
    struct arena *arena = lane->arena;
    const char **argv = arena_array(arena, ARGUMENTS_MOST + 1, sizeof *argv);
    size_t count = 0;
    const char *self = getenv("TWAGENT_SELF");
    char *own = self == NULL || *self == '\0' ? file_self_path() : mem_strdup(self);
    if (lane_launcher(arena, spec->launcher, argv, LAUNCHER_MOST, &count, err) != 0) {
        mem_free(own);
        return -1;
    }
    argv[count++] = keep(arena, own);
    argv[count++] = "worker";
    argv[count++] = "--backend";
    argv[count++] = keep(arena, spec->backend != NULL ? spec->backend : "cpu");
    if (spec->cores != NULL) {
        argv[count++] = "--cores";
        argv[count++] = keep(arena, spec->cores);
    }
    if (spec->device != NULL) {
        argv[count++] = "--device";
        argv[count++] = keep(arena, spec->device);
    }
    mem_free(own);
    lane->argv = argv;
    lane->env = environment(arena);
    lane->spec = *spec;
    lane->elsewhere = spec->launcher != NULL;
    lane->spec.launcher = NULL;
    lane->spec.backend = lane->spec.cores = lane->spec.device = NULL; /* they are in argv */
    lane->spec.problem = keep(arena, spec->problem);
    lane->spec.python = keep(arena, spec->python);
    lane->spec.baseline = keep(arena, spec->baseline);
    lane->spec.ceilings = keep(arena, spec->ceilings);
    lane->spec.ahead_name = keep(arena, spec->ahead_name);
    lane->spec.ahead = keep(arena, spec->ahead);
    lane->spec.ahead_tune = keep(arena, spec->ahead_tune);
    if (access(argv[0], X_OK) != 0 && strchr(argv[0], '/') != NULL)
        return err_set(err, ERR_ENVIRONMENT, "cannot run %s", argv[0]);
    return 0;
}
