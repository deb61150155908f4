#include "eval/backend/build.h"

#include "base/file.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/task.h"

enum { STATE_RUNNING, STATES };

struct building {
    struct task task;
    const struct process_spec *spec;
    struct process *process;
    struct buf *errors; /* or NULL */
    struct err *err;
    int status;
};

static int verdict(struct building *building)
{
    size_t length;
    uint64_t dropped;
    if (process_outcome(building->process) == PROCESS_EXITED &&
        process_status(building->process) == 0)
        return 0;
    struct buf how;
    buf_init(&how, 80);
    process_describe(building->process, &how);
    const char *text = process_errors(building->process, &length, &dropped);
    if (building->errors != NULL)
        buf_add(building->errors, text, length);
    err_set(building->err, ERR_CHILD, "%s %s: %.*s", building->spec->argv[0], buf_text(&how),
            length < 300 ? (int)length : 300, text);
    buf_free(&how);
    return -1;
}

static enum task_result step(struct task *task)
{
    struct building *building = (struct building *)task;
    if (building->process == NULL) {
        building->process = process_start(task->loop, task, building->spec, building->err);
        if (building->process != NULL)
            return TASK_WAIT;
        building->status = -1;
        return TASK_DONE;
    }
    if (process_outcome(building->process) == PROCESS_RUNNING)
        return TASK_WAIT;
    building->status = verdict(building);
    process_free(building->process);
    return TASK_DONE;
}

int build_run(const struct process_spec *spec, struct err *err)
{
    return build_run_heard(spec, NULL, err);
}

int build_run_heard(const struct process_spec *spec, struct buf *errors, struct err *err)
{
    static const char *const states[STATES] = {"running"};
    static const uint32_t moves[STATES] = {0};
    static const struct task_type type = {
        .name = "build", .states = states, .moves = moves, .state_count = STATES, .step = step};
    struct building building = {.spec = spec, .errors = errors, .err = err};
    struct loop *loop = loop_new();
    task_start(loop, &building.task, &type, NULL, "baseline");
    loop_run(loop);
    loop_free(loop);
    return building.status;
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
