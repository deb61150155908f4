/* One call is one launch of the plan: all device memory as the worker's bytes say, the module
 * loaded anew, caches emptied, the plan between two events, outputs back. A second launch on the
 * same bytes could replay what the first one kept where we cannot clear it, so there is none:
 *
 *   module loaded -> (decoy) -> memory cleared -> inputs, poison and red zones up -> shared memory
 *   overwritten -> (held) -> L2 swept -> event, plan, event -> (let go) -> hash -> outputs down
 *
 * A timed call's device is held until all of it is queued: on a busy host the launch, or the second
 * event, would else come late, and that would be in its time.
 */
#include "base/clock.h"
#include "eval/cuda/driver/nvml.h"
#include "eval/cuda/run/runner.h"

#include <stdio.h>
#include <string.h>

/* A first launch finds no instruction in any cache: for kernels shorter than this it shows, and
 * one launch on cleared memory goes before the one that counts. */
static const double decoy_most_ns = 2e6;

bool runner_warms_up(const struct gpu_runner *runner, double last_ns)
{
    return !runner->variables && last_ns <= decoy_most_ns;
}

/* What it writes to outlives the launch: its variables, and the workspace of the driver's that
 * %envreg1 and %envreg2 point a cooperative launch at. */
static bool keeps_more(const struct gpu_runner *runner)
{
    return runner->variables || plan_cooperates(&runner->control->plan);
}

void runner_tell(struct gpu_runner *runner, enum report_status status, const char *text)
{
    runner->report->status = status;
    snprintf(runner->report->reason, sizeof runner->report->reason, "%.*s",
             (int)sizeof runner->report->reason - 1, text);
}

struct calling {
    struct gpu_runner *runner;
    const struct call *call;
    cu_pointer pointers[CALL_POINTERS_MAX];
    struct graph graph;
    struct fault fault;
    uint64_t inputs_hash;
    bool hashed;
    uint64_t first_ns; /* when the event `first` was recorded, on an idle stream */
    uint64_t part_ns;  /* when the present part began */
};

/* What lies since the end of the part before. */
static void part_end(struct calling *calling, enum run_part part)
{
    struct gpu_runner *runner = calling->runner;
    if (runner->control->timeline == 0)
        return;
    (void)runner->driver.stream_wait(runner->stream);
    uint64_t now = clock_now_ns();
    runner->report->part_ns[part] += now - calling->part_ns;
    calling->part_ns = now;
}

/* What a launch did is told by whatever comes behind it, where the host is late. */
static int broken(struct calling *calling, const char *what, cu_result result)
{
    if (result == 0)
        return 0;
    if (calling->runner->report->running != RUNNING_NONE && graph_is_fault(result))
        return graph_fault(&calling->graph, result, NULL, &calling->fault);
    calling->fault.status = REPORT_BROKEN;
    snprintf(calling->fault.reason, sizeof calling->fault.reason, "%s: %s", what,
             driver_error(&calling->runner->driver, result));
    return -1;
}

/* All that is mapped for us, whoever wrote to it; the sweep itself does so where there is one. */
static int clear(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    const struct driver *driver = &runner->driver;
    cu_result result = driver->fill(runner->device_inputs, 0, runner->inputs_bytes, runner->stream);
    if (result == 0)
        result = driver->fill(runner->device_outputs, 0, runner->outputs_bytes, runner->stream);
    if (result == 0)
        result = service_clear(&runner->service, runner->stream);
    if (result == 0)
        result = graph_clear(&calling->graph);
    if (result == 0 && !calling->call->cold)
        result = driver->fill(runner->sweep, 0, runner->sweep_bytes, runner->stream);
    return broken(calling, "clearing", result);
}

/* Tensors by a kernel of ours, each with another seed, then what lies between them. */
static cu_result poison(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    const struct driver *driver = &runner->driver;
    const struct call *call = calling->call;
    uint32_t count = call->input_count + call->output_count + call->workspace_count;
    uint64_t from = 0;
    cu_result result = 0;
    for (uint32_t i = call->input_count; result == 0 && i < count; i++)
        result =
            service_poison(&runner->service, calling->pointers[i], &call->poison[i],
                           call->poison_seed + i * UINT64_C(0x9e3779b97f4a7c15), runner->stream);
    for (uint32_t i = call->input_count; result == 0 && i <= count; i++) {
        uint64_t to = i < count ? call->offsets[i] : call->outputs_bytes;
        if (to > from)
            result = driver->upload(runner->device_outputs + from, runner->outputs + from,
                                    to - from, runner->stream);
        from = i < count ? call->offsets[i] + call->poison[i].bytes : to;
    }
    return result;
}

static int upload(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    const struct driver *driver = &runner->driver;
    const struct call *call = calling->call;
    cu_result result =
        driver->upload(runner->device_inputs + call->inputs_from,
                       runner->inputs + call->inputs_from, call->inputs_bytes, runner->stream);
    if (result == 0 && call->poison_seed != 0)
        result = poison(calling);
    else if (result == 0)
        result = driver->upload(runner->device_outputs, runner->outputs, call->outputs_bytes,
                                runner->stream);
    return broken(calling, "upload", result);
}

/* Inputs before the first launch and after each. */
static int hash_inputs(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    uint64_t hash = 0;
    cu_result result =
        service_hash(&runner->service, runner->device_inputs + calling->call->inputs_from,
                     calling->call->inputs_bytes, runner->control->hash_key, runner->stream, &hash);
    if (result != 0)
        return broken(calling, "hash", result);
    if (calling->hashed && hash != calling->inputs_hash)
        runner->report->inputs_wrong = 1;
    calling->inputs_hash = hash;
    calling->hashed = true;
    return 0;
}

static int wait(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    cu_result result = runner->driver.stream_wait(runner->stream);
    if (result == 0) {
        runner->report->running = RUNNING_NONE;
        return 0;
    }
    return graph_fault(&calling->graph, result, NULL, &calling->fault);
}

/* The call's own inputs; of each whose numbers may change places a quarter lies over the quarter
 * before it, where the seed says. */
static int upload_others(struct calling *calling)
{
    const struct gpu_runner *runner = calling->runner;
    const struct call *call = calling->call;
    cu_result result = 0;
    if (upload(calling) != 0)
        return -1;
    for (uint32_t i = 0; result == 0 && i < call->input_count; i++) {
        uint64_t words = call->poison[i].bytes / 16, quarter = words / 4;
        uint64_t to = quarter > 0 ? (call->poison_seed >> 8) % (words / 2) : 0;
        cu_pointer first = calling->pointers[i] + 16 * to;
        if (quarter > 0)
            result = runner->driver.copy(first, first + 16 * quarter, 16 * quarter, runner->stream);
    }
    return broken(calling, "moving", result);
}

/* A launch before the one that counts. Of a kernel with variables it could fill a table there,
 * which the timed launch would find: so where results are checked, not where they are timed. What
 * is right in the first launch of a process alone shows in the second; what knows its inputs by a
 * few of their numbers, where half of these launches have met almost the same. */
static int decoy(struct calling *calling)
{
    const struct gpu_runner *runner = calling->runner;
    const bool timed = calling->call->timed, others = (calling->call->poison_seed & 2) != 0;
    if (!(timed ? calling->graph.warm : keeps_more(runner)))
        return 0;
    if (clear(calling) != 0 || (!timed && others && upload_others(calling) != 0))
        return -1;
    if ((timed ? graph_launch(&calling->graph, &calling->fault)
               : graph_step(&calling->graph, &calling->fault)) != 0)
        return -1;
    return wait(calling);
}

static int empty_caches(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    const struct driver *driver = &runner->driver;
    cu_result result = service_scrub(&runner->service, runner->stream);
    if (result == 0 && calling->call->cold && driver->reset_persisting != NULL)
        result = driver->reset_persisting();
    if (result == 0 && calling->call->timed)
        result = service_hold(&runner->service, runner->stream);
    if (result == 0 && calling->call->cold)
        result = driver->fill(runner->sweep, 0x5a, runner->sweep_bytes, runner->stream);
    return broken(calling, "emptying caches", result);
}

static int begin_span(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    cu_result result = runner->driver.stream_wait(runner->stream);
    calling->first_ns = clock_now_ns();
    if (result == 0)
        result = runner->driver.event_record(runner->first, runner->stream);
    return broken(calling, "event", result);
}

static int launch(struct calling *calling, double *event_ns, double *span_ns, double *wall_ns)
{
    struct gpu_runner *runner = calling->runner;
    const struct driver *driver = &runner->driver;
    float milliseconds = 0.0f, span = 0.0f;
    if (broken(calling, "event", driver->event_record(runner->begin, runner->stream)) != 0)
        return -1;
    int status = calling->call->timed || calling->call->stays
                     ? graph_launch(&calling->graph, &calling->fault)
                     : graph_step(&calling->graph, &calling->fault);
    if (status != 0)
        return -1;
    if (broken(calling, "event", driver->event_record(runner->end, runner->stream)) != 0)
        return -1;
    service_release(&runner->service);
    if (wait(calling) != 0)
        return -1;
    *wall_ns = (double)(clock_now_ns() - calling->first_ns);
    cu_result result = driver->event_elapsed(&milliseconds, runner->begin, runner->end);
    if (result == 0)
        result = driver->event_elapsed(&span, runner->first, runner->end);
    *event_ns = (double)milliseconds * 1e6;
    *span_ns = (double)span * 1e6;
    return broken(calling, "event", result);
}

/* As a loop that calls it again and again: a launch right before the one that counts, and nothing
 * between them but what takes its results away. */
static int rush(struct calling *calling)
{
    if (!calling->call->stays)
        return 0;
    if (graph_launch(&calling->graph, &calling->fault) != 0)
        return -1;
    cu_result result = graph_clear(&calling->graph);
    if (result == 0 && calling->call->poison_seed != 0)
        result = poison(calling);
    return broken(calling, "poison", result);
}

/* At another shape another of the artifact's cubins may be the one. */
static bool are_the_plans(const struct gpu_runner *runner)
{
    const struct plan *plan = &runner->control->plan;
    size_t found = 0;
    for (size_t k = 0; k < runner->modules.count; k++)
        for (uint32_t i = 0; i < plan->launch_count; i++)
            if (plan->launches[i].image_at == runner->modules.of[k].at) {
                found++;
                break;
            }
    return found == runner->modules.count;
}

/* The modules of a call that stays are the last such call's, with all that its variables hold. */
static int open_graph(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    const bool stays = calling->call->stays;
    if (!stays || !are_the_plans(runner))
        runner_forget(runner);
    int status =
        graph_open(&runner->driver, runner->image, &runner->modules, &runner->control->plan,
                   calling->pointers, runner->stream, &calling->graph, &calling->fault);
    if (stays) {
        runner->modules = calling->graph.modules;
        calling->graph.borrowed = true;
    }
    return status;
}

void runner_forget(struct gpu_runner *runner)
{
    graph_unload(&runner->driver, &runner->modules);
}

static int run(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    const struct call *call = calling->call;
    struct gpu_report *report = runner->report;
    if (open_graph(calling) != 0)
        return -1;
    calling->graph.running = &report->running;
    calling->graph.warm = runner_warms_up(runner, runner->last_ns);
    report->keeps = keeps_more(runner) || calling->graph.local_memory;
    part_end(calling, PART_LOAD);
    if (((call->timed || call->stays) && graph_capture(&calling->graph, &calling->fault) != 0) ||
        decoy(calling) != 0)
        return -1;
    part_end(calling, PART_LOAD);
    if (begin_span(calling) != 0 || clear(calling) != 0)
        return -1;
    part_end(calling, PART_CLEAR);
    if (upload(calling) != 0)
        return -1;
    part_end(calling, PART_UP);
    if (hash_inputs(calling) != 0 || empty_caches(calling) != 0 || rush(calling) != 0)
        return -1;
    if (!call->timed) /* a timed call's device is held here: nobody waits until all is queued */
        part_end(calling, PART_EMPTY);
    if (launch(calling, &report->event_ns, &report->span_ns, &report->wall_ns) != 0)
        return -1;
    if (call->timed)
        nvml_look(&report->state);
    part_end(calling, PART_LAUNCH);
    if (hash_inputs(calling) != 0)
        return -1;
    runner->last_ns = report->event_ns;
    part_end(calling, PART_HASH);
    cu_result result = runner->driver.download(runner->outputs, runner->device_outputs,
                                               call->outputs_bytes, runner->stream);
    if (result == 0)
        result = runner->driver.stream_wait(runner->stream);
    part_end(calling, PART_DOWN);
    return broken(calling, "download", result);
}

void runner_call(struct gpu_runner *runner)
{
    const struct gpu_control *control = runner->control;
    struct gpu_report *report = runner->report;
    struct call call = control->call;
    struct calling calling = {.runner = runner, .call = &call};
    uint32_t count = call.input_count + call.output_count + call.workspace_count;
    for (uint32_t i = 0; i < count && i < CALL_POINTERS_MAX; i++)
        calling.pointers[i] =
            (i < call.input_count ? runner->device_inputs : runner->device_outputs) +
            call.offsets[i];
    memset(report, 0, offsetof(struct gpu_report, pinned));
    memset(report->part_ns, 0, sizeof report->part_ns);
    report->event_ns = report->span_ns = report->wall_ns = 0.0;
    report->state = (struct device_state){0};
    calling.part_ns = clock_now_ns();
    int status = run(&calling);
    graph_close(&calling.graph);
    if (status == 0)
        return;
    memcpy(report->reason, calling.fault.reason, sizeof report->reason);
    report->status = calling.fault.status;
}
