/* A profile inside the runner that is kept for it: the plan launched once for each pass, every time
 * by a freshly loaded module on emptied caches, as a timed call is. CUPTI is opened while it gets
 * warm, and by no other runner. What cannot be counted is recorded, or said to be unknown: that
 * is no failure. Then, whatever could be counted, launches by two clocks (records.c). */
#include "eval/cuda/profile/runner.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PASSES_MOST = 64 };

static struct counters counters; /* opened once in the life of the process */
static enum profile_source best; /* that is still worth trying */
static char why_not[PROFILE_WHY_MOST];
static bool opened;
static double open_ms; /* that nobody was told of yet */

static void lower(enum profile_source source, const struct err *err)
{
    if (why_not[0] == '\0')
        snprintf(why_not, sizeof why_not, "%.*s", (int)sizeof why_not - 1, err->message);
    best = source;
}

void profile_open(struct gpu_runner *runner)
{
    struct err err = {0};
    uint64_t started = clock_now_ns();
    if (opened)
        return;
    opened = true;
    best = PROFILE_COUNTERS;
    if (counters_open(runner->device.handle, runner->context, &counters, &err) != 0)
        lower(err.code == ERR_UNSUPPORTED ? PROFILE_RECORDS : PROFILE_RESOURCES, &err);
    open_ms = (double)(clock_now_ns() - started) / 1e6;
}

int profiling_broken(struct profiling *profiling, cu_result result)
{
    if (result == 0)
        return 0;
    profiling->fault.status = REPORT_BROKEN;
    snprintf(profiling->fault.reason, sizeof profiling->fault.reason, "profile: %s",
             driver_error(&profiling->runner->driver, result));
    return -1;
}

int profiling_clear(struct profiling *profiling)
{
    struct gpu_runner *runner = profiling->runner;
    const struct driver *driver = &runner->driver;
    cu_result result =
        driver->fill(runner->device_outputs, 0, profiling->call->outputs_bytes, runner->stream);
    if (result == 0)
        result = driver->stream_wait(runner->stream);
    return profiling_broken(profiling, result);
}

int profiling_upload(struct profiling *profiling)
{
    struct gpu_runner *runner = profiling->runner;
    const struct driver *driver = &runner->driver;
    const struct call *call = profiling->call;
    cu_result result =
        driver->upload(runner->device_inputs + call->inputs_from,
                       runner->inputs + call->inputs_from, call->inputs_bytes, runner->stream);
    return profiling_broken(profiling, result) != 0 ? -1 : profiling_clear(profiling);
}

/* Nothing in the caches, as before a timed launch. */
int profiling_empty_caches(struct profiling *profiling)
{
    struct gpu_runner *runner = profiling->runner;
    const struct driver *driver = &runner->driver;
    cu_result result = driver->reset_persisting != NULL ? driver->reset_persisting() : 0;
    if (result == 0)
        result = driver->fill(runner->sweep, 0x5a, runner->sweep_bytes, runner->stream);
    if (result == 0)
        result = driver->stream_wait(runner->stream);
    return profiling_broken(profiling, result);
}

/* The plan once; `counted`: as one pass. -1 with profiling->fault; 1 with *err: CUPTI's doing. */
static int pass(struct profiling *profiling, bool counted, bool *all, struct err *err)
{
    struct gpu_runner *runner = profiling->runner;
    struct graph graph;
    int status = graph_open(&runner->driver, runner->image, NULL, &runner->control->plan,
                            profiling->pointers, runner->stream, &graph, &profiling->fault);
    if (status == 0)
        status = profiling_empty_caches(profiling);
    if (status == 0 && counted && counters_start(&counters, err) != 0)
        status = 1;
    if (status == 0)
        status = graph_step(&graph, &profiling->fault);
    if (status == 0 && counted && counters_stop(&counters, all, err) != 0)
        status = 1;
    graph_close(&graph);
    return status;
}

static int count(struct profiling *profiling, struct err *err)
{
    struct wire_profile *told = profiling->told;
    size_t kernels = 0;
    bool all = false;
    if (counters_begin(&counters, err) != 0)
        return 1;
    while (!all && told->passes < PASSES_MOST) {
        int status = pass(profiling, true, &all, err);
        if (status != 0) {
            counters_abandon(&counters);
            return status;
        }
        told->passes++;
    }
    if (counters_end(&counters, told->values, PROFILE_KERNELS_MOST, &kernels, err) != 0)
        return 1;
    told->kernels = (uint32_t)kernels;
    return 0;
}

static int record(struct profiling *profiling, struct err *err)
{
    struct wire_profile *told = profiling->told;
    double times_ns[PROFILE_KERNELS_MOST];
    size_t kernels = 0;
    bool all;
    if (counters_record_begin(&counters, err) != 0)
        return 1;
    int status = pass(profiling, false, &all, err);
    if (counters_record_end(&counters, times_ns, PROFILE_KERNELS_MOST, &kernels, err) != 0 &&
        status == 0)
        status = 1;
    for (size_t i = 0; i < kernels; i++) {
        for (int k = 0; k < COUNTER_COUNT; k++)
            told->values[i][k] = NAN;
        told->values[i][COUNTER_TIME_NS] = times_ns[i];
    }
    told->kernels = (uint32_t)kernels;
    told->passes = 1;
    return status;
}

static int collect(struct profiling *profiling)
{
    struct wire_profile *told = profiling->told;
    while (best != PROFILE_RESOURCES) {
        struct err err = {0};
        told->kernels = told->passes = 0;
        int status = best == PROFILE_COUNTERS ? count(profiling, &err) : record(profiling, &err);
        if (status <= 0)
            return status;
        lower(best == PROFILE_COUNTERS ? PROFILE_RECORDS : PROFILE_RESOURCES, &err);
    }
    told->kernels = told->passes = 0;
    return 0;
}

/* What was counted before stays, whatever becomes of these launches. */
static void record_launches(struct profiling *profiling)
{
    struct wire_records *records = &profiling->told->records;
    if (counters.cupti.library == NULL || counters.cupti.record_next == NULL) {
        memcpy(records->why, why_not, sizeof records->why);
        return;
    }
    if (profile_record_launches(profiling, &counters) == 0)
        return;
    records->fault = 1;
    snprintf(records->why, sizeof records->why, "%.*s", (int)sizeof records->why - 1,
             profiling->fault.reason);
}

/* Counters and records, or records alone. */
static int measure(struct profiling *profiling)
{
    struct gpu_runner *runner = profiling->runner;
    struct wire_profile *told = profiling->told;
    memset(told, 0, sizeof *told);
    told->open_ms = open_ms;
    open_ms = 0.0;
    uint64_t started = clock_now_ns();
    int status = 0;
    if (runner->control->command == WIRE_PROFILE && best != PROFILE_RESOURCES)
        status = profiling_upload(profiling);
    if (status == 0 && runner->control->command == WIRE_PROFILE)
        status = collect(profiling);
    if (status == 0)
        record_launches(profiling);
    told->source = best;
    memcpy(told->why, why_not, sizeof why_not);
    told->spent_ms = (double)(clock_now_ns() - started) / 1e6;
    return status;
}

static int sample(struct profiling *profiling)
{
    struct wire_hot *hot = &profiling->runner->report->hot;
    uint64_t started = clock_now_ns();
    memset(hot, 0, sizeof *hot);
    int status = profile_sample(profiling, &counters);
    hot->ms = (double)(clock_now_ns() - started) / 1e6;
    return status;
}

void profile_run(struct gpu_runner *runner)
{
    struct gpu_report *report = runner->report;
    struct call call = runner->control->call;
    struct profiling profiling = {.runner = runner, .told = &report->profile, .call = &call};
    uint32_t pointers = call.input_count + call.output_count + call.workspace_count;
    report->status = REPORT_FINE;
    profile_open(runner);
    for (uint32_t i = 0; i < pointers && i < CALL_POINTERS_MAX; i++)
        profiling.pointers[i] =
            (i < call.input_count ? runner->device_inputs : runner->device_outputs) +
            call.offsets[i];
    int status =
        runner->control->command == WIRE_SAMPLES ? sample(&profiling) : measure(&profiling);
    if (status == 0)
        return;
    memcpy(report->reason, profiling.fault.reason, sizeof report->reason);
    report->status = profiling.fault.status;
}
