/* One call is one launch of the plan: all device memory as the worker's bytes say, the module
 * loaded anew, caches emptied, the plan between two events, outputs back. A second launch on the
 * same bytes could replay what the first one kept where we cannot clear it, so there is none:
 *
 *   module loaded -> (decoy) -> memory cleared -> inputs, poison and red zones up -> shared memory,
 *   registers overwritten -> (held) -> L2 swept -> (crowd) -> event, plan, event -> (let go) ->
 *   hashes -> outputs down
 *
 * A call that stays is another matter: there the module is the last such call's, and the plan is
 * launched again and again before the launch that counts (rounds.c).
 *
 * A timed call's device is held until all of it is queued: on a busy host the launch, or the second
 * event, would else come late, and that would be in its time.
 */
#include "base/clock.h"
#include "eval/cuda/driver/nvml.h"
#include "eval/cuda/run/calling.h"

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
int calling_broken(struct calling *calling, const char *what, cu_result result)
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
    if (result == 0 && runner->kept_bytes > 0)
        result = driver->fill(runner->kept, 0, runner->kept_bytes, runner->stream);
    if (result == 0)
        result = service_clear(&runner->service, runner->stream);
    if (result == 0)
        result = graph_clear(&calling->graph);
    if (result == 0 && !calling->call->cold)
        result = driver->fill(runner->sweep, 0, runner->sweep_bytes, runner->stream);
    return calling_broken(calling, "clearing", result);
}

static int upload(struct calling *calling)
{
    return calling_broken(calling, "upload", tensors_upload(&calling->tensors));
}

/* Inputs, and what lies around outputs and workspaces, before the first launch and after each. */
static int hash_what_stays(struct calling *calling)
{
    struct gpu_report *report = calling->runner->report;
    uint64_t inputs = 0, around = 0;
    cu_result result = tensors_hash_inputs(&calling->tensors, &inputs);
    if (result == 0)
        result = tensors_hash_around(&calling->tensors, &around);
    if (result != 0)
        return calling_broken(calling, "hash", result);
    if (calling->hashed && inputs != calling->inputs_hash)
        report->inputs_wrong = 1;
    if (calling->hashed && around != calling->around_hash)
        report->around_wrong = 1;
    calling->inputs_hash = inputs;
    calling->around_hash = around;
    calling->hashed = true;
    return 0;
}

int calling_wait(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    cu_result result = runner->driver.stream_wait(runner->stream);
    if (result == 0) {
        runner->report->running = RUNNING_NONE;
        return 0;
    }
    return graph_fault(&calling->graph, result, NULL, &calling->fault);
}

/* The call's own inputs, of which some numbers have changed places. */
static int upload_others(struct calling *calling)
{
    if (upload(calling) != 0)
        return -1;
    return calling_broken(calling, "moving", tensors_swap(&calling->tensors));
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
    return calling_wait(calling);
}

static int empty_caches(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    const struct driver *driver = &runner->driver;
    uint64_t seed = calling->call->poison_seed;
    cu_result result = scrub_blocks(&runner->scrub, seed, runner->stream);
    if (result == 0 && calling->graph.local_memory)
        result = scrub_local(&runner->scrub, seed, runner->stream);
    if (result == 0 && calling->call->cold && driver->reset_persisting != NULL)
        result = driver->reset_persisting();
    if (result == 0 && calling->call->timed)
        result = service_hold(&runner->service, runner->stream);
    if (result == 0 && calling->call->cold)
        result = driver->fill(runner->sweep, 0x5a, runner->sweep_bytes, runner->stream);
    return calling_broken(calling, "emptying caches", result);
}

static int begin_span(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    cu_result result = runner->driver.stream_wait(runner->stream);
    calling->first_ns = clock_now_ns();
    if (result == 0)
        result = runner->driver.event_record(runner->first, runner->stream);
    return calling_broken(calling, "event", result);
}

static int launch_plan(struct calling *calling)
{
    const struct call *call = calling->call;
    struct graph *graph = &calling->graph;
    if (calling->taken)
        return 0;
    return call->stays     ? rounds_launch(calling)
           : call->timed   ? graph_launch(graph, &calling->fault)
           : call->crowded ? graph_queue(graph, &calling->fault)
                           : graph_step(graph, &calling->fault);
}

static int launch(struct calling *calling, double *event_ns, double *span_ns, double *wall_ns)
{
    struct gpu_runner *runner = calling->runner;
    const struct driver *driver = &runner->driver;
    float milliseconds = 0.0f, span = 0.0f;
    if (crowd_comes(calling) != 0 ||
        calling_broken(calling, "event", driver->event_record(runner->begin, runner->stream)) != 0)
        return -1;
    if (launch_plan(calling) != 0 || crowd_follows(calling) != 0)
        return -1;
    if (calling_broken(calling, "event", driver->event_record(runner->end, runner->stream)) != 0)
        return -1;
    service_release(&runner->service);
    if (calling_wait(calling) != 0)
        return -1;
    *wall_ns = (double)(clock_now_ns() - calling->first_ns);
    cu_result result = driver->event_elapsed(&milliseconds, runner->begin, runner->end);
    if (result == 0)
        result = driver->event_elapsed(&span, runner->first, runner->end);
    *event_ns = (double)milliseconds * 1e6;
    *span_ns = (double)span * 1e6;
    return calling_broken(calling, "event", result);
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
                   calling->tensors.pointers, runner->stream, &calling->graph, &calling->fault);
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
    if (hash_what_stays(calling) != 0 || empty_caches(calling) != 0 || rounds_run(calling) != 0)
        return -1;
    if (!call->timed) /* a timed call's device is held here: nobody waits until all is queued */
        part_end(calling, PART_EMPTY);
    if (launch(calling, &report->event_ns, &report->span_ns, &report->wall_ns) != 0)
        return -1;
    if (call->timed)
        nvml_look(&report->state);
    part_end(calling, PART_LAUNCH);
    if (hash_what_stays(calling) != 0 || rounds_end(calling) != 0)
        return -1;
    runner->last_ns = report->event_ns;
    part_end(calling, PART_HASH);
    cu_result result = tensors_download(&calling->tensors);
    if (result == 0)
        result = runner->driver.stream_wait(runner->stream);
    part_end(calling, PART_DOWN);
    return calling_broken(calling, "download", result);
}

static int bring_earlier(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    cu_result result = tensors_bring_kept(&calling->tensors);
    if (result == 0)
        result = runner->driver.stream_wait(runner->stream);
    return calling_broken(calling, "download", result);
}

void runner_call(struct gpu_runner *runner)
{
    const struct gpu_control *control = runner->control;
    struct gpu_report *report = runner->report;
    struct call call = control->call;
    struct calling calling = {.runner = runner, .call = &call, .tensors = {.runner = runner}};
    tensors_place(&call, runner->device_inputs, runner->device_outputs, &calling.tensors);
    memset(report, 0, offsetof(struct gpu_report, pinned));
    memset(report->part_ns, 0, sizeof report->part_ns);
    report->event_ns = report->span_ns = report->wall_ns = 0.0;
    report->state = (struct device_state){0};
    calling.part_ns = clock_now_ns();
    int status = call.earlier ? bring_earlier(&calling) : run(&calling);
    graph_close(&calling.graph);
    if (status == 0)
        return;
    memcpy(report->reason, calling.fault.reason, sizeof report->reason);
    report->status = calling.fault.status;
}
