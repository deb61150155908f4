#include "eval/backend/build.h"

#include "base/file.h"
#include "base/mem.h"
#include "process/spawn.h"

int build_run(const struct process_spec *spec, struct err *err)
{
    return build_run_heard(spec, NULL, err);
}

int build_run_heard(const struct process_spec *spec, struct buf *errors, struct err *err)
{
    const struct spawn_spec child = {.argv = spec->argv,
                                     .env = spec->env,
                                     .folder = spec->folder,
                                     .fds = spec->pass_fds,
                                     .fd_count = spec->pass_count};
    struct buf said;
    buf_init(&said, spec->output_max);
    int status = spawn_run(&child, spec->timeout_ms, 0, NULL, &said, err);
    if (status != 0) {
        struct err how = *err;
        if (errors != NULL)
            buf_add(errors, buf_text(&said), said.length);
        err_set(err, how.code, "%s: %.300s", how.message, buf_text(&said));
    }
    buf_free(&said);
    return status;
}

int build_baseline(const struct backend *backend, const struct lane_facts *lane,
                   const struct problem *problem, const struct baseline_spec *baseline,
                   const char *parent, const char *name, struct arena *arena, const char **artifact,
                   struct err *err)
{
    struct build build = {0};
    char *folder = file_join(parent, name);
    const char *kept = arena_strdup(arena, folder);
    mem_free(folder);
    if (file_make_dirs(kept, err) != 0 ||
        backend->build(arena, lane, problem, NULL, NULL, baseline, BUILD_FAST, kept, &build, err) !=
            0 ||
        build_run(&build.spec, err) != 0)
        return err_wrap(err, "%s", baseline->name);
    *artifact = build.artifact;
    return 0;
}
