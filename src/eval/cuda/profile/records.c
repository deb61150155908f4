/* Launches by two clocks, inside the runner that is kept for profiles. Everything is done as before
 * a timed launch (eval/cuda/run/call.c), so that what differs is CUPTI: the module loaded anew, the
 * plan captured where it is a graph (with the records on, so that each of its nodes has one), a
 * launch before the one that counts where that is short and has no variables, caches emptied;
 * event, plan, event. */
#include "eval/cuda/profile/runner.h"

#include <stdio.h>

enum { SWEEPS = 4 };

static int wait(struct profiling *profiling, const struct graph *graph)
{
    struct gpu_runner *runner = profiling->runner;
    cu_result result = runner->driver.stream_wait(runner->stream);
    return result == 0 ? 0 : graph_fault(graph, result, NULL, &profiling->fault);
}

static int prepare(struct profiling *profiling, struct graph *graph)
{
    if (graph_capture(graph, &profiling->fault) != 0)
        return -1;
    if (graph->warm && (profiling_clear(profiling) != 0 ||
                        graph_launch(graph, &profiling->fault) != 0 || wait(profiling, graph) != 0))
        return -1;
    return profiling_clear(profiling);
}

/* Not waited for: meanwhile the plan is launched, which takes long with CUPTI, and the events have
 * nothing of that between them. */
static int empty_caches(struct profiling *profiling)
{
    struct gpu_runner *runner = profiling->runner;
    const struct driver *driver = &runner->driver;
    cu_result result = driver->reset_persisting != NULL ? driver->reset_persisting() : 0;
    for (int i = 0; result == 0 && i < SWEEPS; i++)
        result = driver->fill(runner->sweep, 0x5a, runner->sweep_bytes, runner->stream);
    return profiling_broken(profiling, result);
}

static int launch(struct profiling *profiling, struct graph *graph, double *event_ns)
{
    struct gpu_runner *runner = profiling->runner;
    const struct driver *driver = &runner->driver;
    float milliseconds = 0.0f;
    if (empty_caches(profiling) != 0 ||
        profiling_broken(profiling, driver->event_record(runner->begin, runner->stream)) != 0 ||
        graph_launch(graph, &profiling->fault) != 0 ||
        profiling_broken(profiling, driver->event_record(runner->end, runner->stream)) != 0 ||
        wait(profiling, graph) != 0)
        return -1;
    cu_result result = driver->event_elapsed(&milliseconds, runner->begin, runner->end);
    *event_ns = (double)milliseconds * 1e6;
    return profiling_broken(profiling, result);
}

/* A graph may run a memset as a kernel, or not tell of it; of kernels none may be missing. */
static bool are_the_plans(const struct plan *plan, const struct counters_span *span)
{
    return span->untimed == 0 && span->kernels >= plan->launch_count &&
           span->kernels + span->memsets <= plan->launch_count + plan->memset_count;
}

/* -1: profiling->fault; 1: *err. */
static int one(struct profiling *profiling, struct counters *counters, uint32_t index,
               struct err *err)
{
    struct gpu_runner *runner = profiling->runner;
    const struct plan *plan = &runner->control->plan;
    struct wire_records *records = &profiling->told->records;
    struct counters_span span = {0};
    struct graph graph;
    int status = graph_open(&runner->driver, runner->image, NULL, plan, profiling->pointers,
                            runner->stream, &graph, &profiling->fault);
    graph.warm = runner_warms_up(runner, index == 0 ? 0.0 : records->event_ns[index - 1]);
    if (status == 0)
        status = prepare(profiling, &graph);
    if (status == 0 && counters_span_start(counters, err) != 0)
        status = 1;
    if (status == 0)
        status = launch(profiling, &graph, &records->event_ns[index]);
    if (status == 0 && counters_span_stop(counters, &span, err) != 0)
        status = 1;
    graph_close(&graph);
    if (status != 0)
        return status;
    records->kernels = span.kernels;
    records->memsets = span.memsets;
    records->span_ns[index] = span.span_ns;
    records->busy_ns[index] = span.busy_ns;
    if (are_the_plans(plan, &span))
        return 0;
    err_set(err, ERR_UNSUPPORTED,
            "CUPTI's records are not the plan's: %u kernels and %u memsets (%u without times) of "
            "%u and %u",
            span.kernels, span.memsets, span.untimed, plan->launch_count, plan->memset_count);
    return 1;
}

int profile_record_launches(struct profiling *profiling, struct counters *counters)
{
    struct wire_records *records = &profiling->told->records;
    struct err err = {0};
    if (profiling_upload(profiling) != 0)
        return -1;
    int status = counters_span_begin(counters, &err) != 0 ? 1 : 0;
    bool begun = status == 0;
    while (status == 0 && records->launches < RECORDED_MOST) {
        status = one(profiling, counters, records->launches, &err);
        records->launches += status == 0;
    }
    if (begun)
        counters_span_end(counters);
    if (status == 0)
        return 0;
    records->launches = 0;
    if (status > 0)
        snprintf(records->why, sizeof records->why, "%.*s", (int)sizeof records->why - 1,
                 err.message);
    return status > 0 ? 0 : -1;
}
