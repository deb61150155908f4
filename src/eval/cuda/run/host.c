#include "eval/cuda/run/host.h"

#include "base/clock.h"
#include "base/random.h"
#include "eval/data/timeline.h"

#include <stdio.h>
#include <string.h>

enum { LOAD_MS = 30000 };

int gpu_host_await(struct gpu_host *host, uint64_t timeout_ms, struct err *err)
{
    unsigned said;
    return host_await(&host->base, 1, clock_now_ns() + timeout_ms * UINT64_C(1000000), &said, err);
}

int gpu_host_ask(struct gpu_host *host, uint64_t timeout_ms, struct err *err)
{
    return host_go(&host->base, err) == 0 ? gpu_host_await(host, timeout_ms, err) : -1;
}

int gpu_host_wait_warm(struct gpu_host *host, struct err *err)
{
    uint64_t begun = timeline_begin();
    bool waits = !host->base.warm;
    if (host_wait_warm(&host->base, err) != 0)
        return -1;
    if (waits)
        timeline_end(host->report->pinned != 0 ? "runner.wait" : "runner.wait.unpinned", begun);
    return 0;
}

/* ---- what the report says ---- */

static int judge(struct gpu_host *host, struct err *err)
{
    return host_judge(&host->base, host->report->status, host->report->reason,
                      sizeof host->report->reason, err);
}

/* What a launch leaves in local memory, behind a variable or in a cooperative launch's workspace a
 * later one could find: then no runner is kept for ever. */
static void tell_keeps(struct gpu_host *host, uint32_t keeps)
{
    host->base.subject.keeps_state = keeps != 0;
    host->base.spoilt = host->base.spoilt || keeps != 0;
}

static int read_variants(struct gpu_host *host, const char *artifact, struct err *err)
{
    struct gpu_control *control = host->control;
    control->image_count = 0;
    arena_free(host->arena);
    host->arena = arena_new();
    if (variants_beside(host->arena, host->program.candidate, artifact, &host->variants, err) != 0)
        return -1;
    for (size_t i = 0; host->variants != NULL && i < host->variants->launch_count; i++)
        for (size_t k = 0; k < host->variants->launches[i].count; k++) {
            const struct kernel *kernel = &host->variants->launches[i].variants[k];
            control->images[control->image_count].at = kernel->offset;
            control->images[control->image_count++].bytes = kernel->bytes;
        }
    return 0;
}

int gpu_host_load(struct gpu_host *host, const struct program *program, const char *artifact,
                  struct err *err)
{
    host->program = *program;
    if (strlen(artifact) >= WIRE_PATH_MAX)
        return err_set(err, ERR_LIMIT, "the artifact's path is too long");
    if (read_variants(host, artifact, err) != 0)
        return -1;
    strcpy(host->control->artifact, artifact);
    host->control->command = WIRE_LOAD;
    host->used = true;
    if (gpu_host_ask(host, LOAD_MS, err) != 0)
        return err_wrap(err, "while it was loaded");
    tell_keeps(host, host->report->keeps);
    return judge(host, err);
}

static void tell_parts(const struct gpu_report *report, uint64_t start_ns)
{
    static const char *const names[RUN_PARTS] = {"run.load",   "run.clear", "run.up",  "run.empty",
                                                 "run.launch", "run.hash",  "run.down"};
    for (int i = 0; i < RUN_PARTS; i++)
        if (report->part_ns[i] > 0)
            timeline_put(names[i], start_ns, report->part_ns[i]);
}

/* Events that tell of more time than passed around them are no measurement: a launch's lie within
 * a longer span, which is also taken by the clock. */
static bool told_wrong(struct gpu_host *host, const struct gpu_report *report, struct err *err)
{
    const double resolution_ns = 5000.0, drift = 1.001;
    double event = report->event_ns, span = report->span_ns, wall = report->wall_ns;
    if (event <= span + resolution_ns && span <= drift * wall + resolution_ns)
        return false;
    host_end(&host->base);
    err_set(err, ERR_PROTOCOL,
            "the device tells of %.3f ms within %.3f ms, which took %.3f ms by the clock",
            event / 1e6, span / 1e6, wall / 1e6);
    return true;
}

/* A copy of the report: the runner still could write to it, the worker reads it once. */
static int read_times(struct gpu_host *host, uint64_t wall_ns, uint64_t *elapsed_ns,
                      struct err *err)
{
    struct gpu_report report = *host->report;
    if (!(report.event_ns >= 0.0 && report.event_ns <= (double)wall_ns)) {
        host_end(&host->base);
        return err_set(err, ERR_PROTOCOL, "the device tells of %.3f ms in a call that took %.3f ms",
                       report.event_ns / 1e6, (double)wall_ns / 1e6);
    }
    tell_keeps(host, report.keeps);
    host->base.subject.launches = report.launches;
    host->base.subject.differs = report.differs != 0 && report.kept != 0;
    host->base.subject.wrote_around = report.around_wrong != 0;
    if (report.inputs_wrong != 0)
        return err_set(err, ERR_LIMIT, "wrote to an input");
    if (told_wrong(host, &report, err))
        return -1;
    host->base.subject.state = report.state;
    host->base.subject.state.span_ns = report.span_ns;
    host->base.subject.state.wall_ns = report.wall_ns;
    *elapsed_ns = report.event_ns > 1.0 ? (uint64_t)report.event_ns : 1;
    return 0;
}

/* What lies around a launch: the module, and the bytes over a slow bus, up and down. */
static uint64_t around_ms(const struct call *call)
{
    return 500 + 2 * (call->inputs_bytes + call->outputs_bytes) / 500000;
}

/* The entry that ran when the runner hung or died; of a graph, all that it may have been; "": none
 * of the plan's. */
static void name_running(const struct gpu_host *host, char text[PLAN_ENTRIES_TEXT])
{
    const struct plan *plan = &host->control->plan;
    uint32_t running = host->report->running;
    text[0] = '\0';
    if (running == RUNNING_ANY)
        plan_entries(plan, text);
    else if (running > RUNNING_NONE && running <= plan->launch_count)
        snprintf(text, PLAN_ENTRIES_TEXT, "%s", plan->launches[running - 1].entry);
}

static int no_answer(struct gpu_host *host, uint64_t timeout_ms, struct err *err)
{
    char entry[PLAN_ENTRIES_TEXT];
    name_running(host, entry);
    if (err->code == ERR_TIMEOUT)
        return err_set(err, ERR_TIMEOUT, "%s did not end within %.3g s",
                       entry[0] != '\0' ? entry : "the call, none of whose kernels ran,",
                       (double)timeout_ms / 1e3);
    return entry[0] != '\0' ? err_wrap(err, "%s", entry) : -1;
}

int gpu_host_plan(const struct gpu_host *host, const struct call *call, struct plan *plan,
                  struct err *err)
{
    return plan_make_of(&host->program, host->variants, host->facts, call, plan, err);
}

int gpu_host_call(struct gpu_host *host, const struct call *call, uint64_t *elapsed_ns,
                  struct err *err)
{
    if (host->base.reaped)
        return err_set(err, ERR_CHILD, "the runner has ended");
    if (gpu_host_plan(host, call, &host->control->plan, err) != 0)
        return -1;
    if (call->timed)
        gpu_host_settle();
    struct gpu_control *control = host->control;
    control->command = WIRE_CALL;
    call_copy(call, &control->call);
    control->hash_key = random_seed();
    uint64_t timeout_ms = call->timeout_ms * (1 + call->rounds) + around_ms(call);
    uint64_t start = clock_now_ns();
    if (gpu_host_ask(host, timeout_ms, err) != 0)
        return no_answer(host, call->timeout_ms, err);
    uint64_t wall_ns = clock_now_ns() - start;
    tell_parts(host->report, start);
    if (judge(host, err) != 0)
        return -1;
    return read_times(host, wall_ns, elapsed_ns, err);
}
