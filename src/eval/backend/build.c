#include "eval/backend/build.h"

#include "base/file.h"
#include "base/mem.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool build_child_killed(const char *errors, size_t length)
{
    static const char *const words[] = {"Killed signal terminated program",  /* gcc */
                                        "terminated with signal 9",          /* collect2, of ld */
                                        "unable to execute command: Killed", /* clang */
                                        "cuda-compile: the compiler was killed"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (memmem(errors, length, words[i], strlen(words[i])) != NULL)
            return true;
    return false;
}

int build_run_heard(const struct process_spec *spec, struct buf *errors, bool *killed,
                    struct err *err)
{
    const struct spawn_spec child = {.name = "the compiler",
                                     .argv = spec->argv,
                                     .env = spec->env,
                                     .folder = spec->folder,
                                     .fds = spec->pass_fds,
                                     .fd_count = spec->pass_count};
    int status = spawn_run(&child, spec->timeout_ms, 0, NULL, errors, err);
    *killed = status > 0 || (status != 0 && build_child_killed(buf_text(errors), errors->length));
    if (status != 0) {
        struct err how = *err;
        return err_set(err, how.code, "%s%s%.300s", how.message, errors->length > 0 ? ": " : "",
                       buf_text(errors));
    }
    return 0;
}

int build_run(const struct process_spec *spec, struct err *err)
{
    bool killed;
    BUF_LOCAL(said, spec->output_max);
    return build_run_heard(spec, &said, &killed, err);
}

/* By gcc's, clang's and the linkers' words. */
static bool about_kernel(const char *said)
{
    return strstr(said, "kernel'") != NULL || strstr(said, "undefined symbol: kernel") != NULL;
}

int build_baseline(const struct backend *backend, const struct lane_facts *lane,
                   const struct problem *problem, const struct baseline_spec *baseline,
                   enum build_flavour flavour, const char *parent, const char *name,
                   struct arena *arena, const char **artifact, struct err *err)
{
    struct build build = {0};
    MEM_LOCAL char *folder = file_join(parent, name);
    const char *kept = arena_strdup(arena, folder);
    if (file_make_dirs(kept, err) != 0 ||
        backend->build(arena, lane, problem, NULL, NULL, baseline, flavour, kept, &build, err) != 0)
        return -1;
    bool killed;
    BUF_LOCAL(said, build.spec.output_max);
    int status = build_run_heard(&build.spec, &said, &killed, err);
    if (status != 0 && build.signature != NULL && about_kernel(buf_text(&said))) {
        err->code = ERR_USAGE;
        return err_wrap(err, "it has to define %s", build.signature);
    }
    if (status != 0)
        return -1;
    *artifact = build.artifact;
    return 0;
}

int build_write(const char *folder, const char *name, const struct buf *text, struct err *err)
{
    MEM_LOCAL char *path = file_join(folder, name);
    int result = 0, fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (text->dropped > 0)
        result = err_set(err, ERR_LIMIT, "the source is larger than %zu bytes", text->max);
    else if (fd < 0 || write(fd, text->data, text->length) != (ssize_t)text->length)
        result = err_set_errno(err, ERR_IO, errno, "%s", path);
    if (fd >= 0)
        close(fd);
    return result;
}
