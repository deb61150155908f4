/* The disposable process: a device before there is a candidate, then its pipelines. All of its code
 * is ours and the driver's; a shader reaches what is bound, and nothing of that outlives a call.
 *
 * One call is one launch of all passes, on memory that was all written just before: inputs and red
 * zones as the worker has them, outputs and workspaces with bits that mean nothing. Before a timed
 * one the passes run once on the same memory, since drivers compile at the first use; what that
 * left is written over, too.
 *
 *   buffers -> (filled, passes) -> filled -> caches swept -> timestamp, passes, timestamp -> back
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "eval/data/noise.h"
#include "eval/runner/inside.h"
#include "eval/webgpu/device.h"
#include "eval/webgpu/probe.h"
#include "eval/webgpu/webgpu.h"
#include "eval/webgpu/wire.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

struct runner_buffer { /* one tensor's, with its red zone where that is bound, too */
    wgpu_handle handle;
    uint64_t bytes; /* of the handle: the tensor's, then BEYOND */
};

struct runner {
    const struct webgpu_control *control;
    struct webgpu_report *report;
    unsigned char *inputs, *outputs; /* the regions */
    struct device device;
    wgpu_handle queries, resolved, ticks, staging; /* staging: all that is read back */
    wgpu_handle sweep;                             /* NULL: nothing to empty */
    uint64_t staging_bytes;
    wgpu_handle group_layout, pipeline_layout, pipelines[LAUNCHES_MAX];
    struct runner_buffer buffers[CALL_POINTERS_MAX], dims;
    void *scratch; /* what a tensor is filled with */
    size_t scratch_bytes;
    struct noise before, after; /* the passes that are timed */
};

static void report(struct runner *runner, enum report_status status, const char *text)
{
    runner->report->status = status;
    snprintf(runner->report->reason, sizeof runner->report->reason, "%s", text);
}

enum { BEYOND = 256 }; /* bytes of the red zone behind a tensor, in the same buffer */

struct calling {
    struct runner *runner;
    const struct call *call;
    const struct plan *plan;
    uint32_t count; /* of tensors */
    bool beyond;    /* what lies behind a tensor is bound with it */
};

static uint64_t bytes_of(const struct calling *calling, uint32_t tensor)
{
    return calling->runner->buffers[tensor].bytes;
}

/* A guarded call binds what lies behind a tensor with it, so that who reads there reads numbers
 * that mean nothing, and who writes there is found: a driver would give zeros, or the last element,
 * and forget the write. All others, which a source can tell from these, bind what a timed call
 * does. Not where the source asks how long an array is. */
static bool binds_beyond(const struct calling *calling)
{
    return calling->call->guarded && calling->plan->measures_arrays == 0;
}

static bool is_input(const struct calling *calling, uint32_t tensor)
{
    return tensor < calling->call->input_count;
}

static void make_buffer(struct runner *runner, struct runner_buffer *buffer, uint64_t usage,
                        uint64_t bytes)
{
    const struct wgpu *wgpu = &runner->device.wgpu;
    if (buffer->bytes == bytes)
        return;
    if (buffer->handle != NULL)
        wgpu->buffer_free(buffer->handle);
    buffer->handle = wgpu_buffer(&runner->device, usage, bytes);
    buffer->bytes = bytes;
}

static void make_buffers(struct calling *calling)
{
    struct runner *runner = calling->runner;
    uint64_t back = 0, dims = calling->call->dim_count > 0 ? calling->call->dim_count : 1;
    for (uint32_t i = 0; i < calling->count; i++) {
        uint64_t bytes = (calling->plan->tensor_bytes[i] + 3) / 4 * 4;
        make_buffer(runner, &runner->buffers[i],
                    WGPU_BUFFER_STORAGE | WGPU_BUFFER_COPY_DST | WGPU_BUFFER_COPY_SRC,
                    (bytes < 16 ? 16 : bytes) + BEYOND);
        back += is_input(calling, i) ? 0 : bytes_of(calling, i);
    }
    make_buffer(runner, &runner->dims, WGPU_BUFFER_UNIFORM | WGPU_BUFFER_COPY_DST,
                (dims * 4 + 15) / 16 * 16); /* also of none: a buffer has bytes */
    struct runner_buffer staging = {runner->staging, runner->staging_bytes};
    make_buffer(runner, &staging, WGPU_BUFFER_MAP_READ | WGPU_BUFFER_COPY_DST, back);
    runner->staging = staging.handle;
    runner->staging_bytes = staging.bytes;
}

/* ---- filling ---- */

static uint64_t mix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void *scratch(struct runner *runner, size_t bytes)
{
    if (runner->scratch_bytes < bytes) {
        free(runner->scratch);
        runner->scratch = malloc(bytes);
        runner->scratch_bytes = bytes;
        if (runner->scratch == NULL)
            give_up("out of memory");
    }
    return runner->scratch;
}

static const void *poison(struct calling *calling, uint32_t tensor, uint64_t round)
{
    const struct call *call = calling->call;
    const struct call_poison *poison = &call->poison[tensor];
    uint64_t bytes = bytes_of(calling, tensor), own = calling->plan->tensor_bytes[tensor];
    uint64_t state = call->poison_seed + tensor * UINT64_C(0x9e37) + round;
    uint64_t fixed = poison->bits.fixed[0] | (uint64_t)poison->bits.fixed[1] << 32;
    uint64_t noise = poison->bits.random[0] | (uint64_t)poison->bits.random[1] << 32;
    unsigned char *into = scratch(calling->runner, bytes + 8);
    for (uint64_t at = 0; at < own; at += 8) {
        uint64_t bits = fixed | (mix(&state) & noise);
        memcpy(into + at, &bits, 8);
    }
    memcpy(into + own, calling->runner->outputs + call->offsets[tensor] + own, bytes - own);
    return into;
}

static void fill(struct calling *calling, uint64_t round)
{
    struct runner *runner = calling->runner;
    const struct wgpu *wgpu = &runner->device.wgpu;
    const struct call *call = calling->call;
    for (uint32_t i = 0; i < calling->count; i++) {
        const void *from =
            is_input(calling, i) ? runner->inputs + call->offsets[i] : poison(calling, i, round);
        wgpu->write_buffer(runner->device.queue, runner->buffers[i].handle, 0, from,
                           bytes_of(calling, i));
    }
    uint32_t dims[DIMS_MAX + 4] = {0};
    for (uint32_t i = 0; i < call->dim_count; i++)
        dims[i] = (uint32_t)call->dims[i];
    wgpu->write_buffer(runner->device.queue, runner->dims.handle, 0, dims, runner->dims.bytes);
}

/* ---- the passes ---- */

static wgpu_handle make_group(struct calling *calling)
{
    struct runner *runner = calling->runner;
    const struct plan *plan = calling->plan;
    struct wgpu_group_entry entries[WGSL_BINDINGS_MOST] = {0};
    for (uint32_t i = 0; i < plan->binding_count; i++) {
        const struct plan_binding *binding = &plan->bindings[i];
        bool dims = binding->kind == PLAN_DIMS;
        const struct runner_buffer *buffer =
            dims ? &runner->dims : &runner->buffers[binding->tensor];
        entries[i].binding = binding->binding;
        entries[i].buffer = buffer->handle;
        entries[i].size = buffer->bytes - (dims || calling->beyond ? 0 : BEYOND);
    }
    const struct wgpu_group_descriptor descriptor = {
        .layout = runner->group_layout, .count = plan->binding_count, .entries = entries};
    return runner->device.wgpu.create_group(runner->device.handle, &descriptor);
}

static void encode(struct calling *calling, wgpu_handle encoder, wgpu_handle group, bool timed)
{
    struct runner *runner = calling->runner;
    const struct wgpu *wgpu = &runner->device.wgpu;
    const struct plan *plan = calling->plan;
    const struct wgpu_timestamps stamps = {.set = runner->queries, .begin = 0, .end = 1};
    const struct wgpu_pass_descriptor descriptor = {.timestamps = timed ? &stamps : NULL};
    wgpu_handle pass = wgpu->begin_pass(encoder, &descriptor);
    wgpu->use_group(pass, 0, group, 0, NULL);
    for (uint32_t i = 0; i < plan->pass_count; i++) {
        const uint32_t *groups = plan->passes[i].groups;
        wgpu->use_pipeline(pass, runner->pipelines[i]);
        wgpu->dispatch(pass, groups[0], groups[1], groups[2]);
    }
    wgpu->end_pass(pass);
    wgpu->pass_free(pass);
}

/* What the threads of a driver that computes on the CPU have run and waited, but for this one,
 * which waits for them. */
static void read_others(const struct runner *runner, struct noise *noise)
{
    if (!runner->device.software)
        return;
    noise_read(getpid(), noise);
    noise->subject_ns -= noise->own_ns;
    noise->subject_ran_ns -= noise->called_ran_ns;
    noise->threads--;
    noise->own_ns = noise->called_ran_ns = 0;
}

static void launch(struct calling *calling, bool timed)
{
    struct runner *runner = calling->runner;
    const struct wgpu *wgpu = &runner->device.wgpu;
    wgpu_handle group = make_group(calling), commands = wgpu_encoder(&runner->device);
    if (timed && calling->call->cold && runner->sweep != NULL) {
        wgpu->clear_buffer(commands, runner->sweep, 0, UINT64_MAX);
        wgpu_submit(&runner->device, commands);
        commands = wgpu_encoder(&runner->device);
    } else { /* what was written is there before the clock starts */
        wgpu_submit(&runner->device, commands);
        commands = wgpu_encoder(&runner->device);
    }
    encode(calling, commands, group, timed);
    if (timed) {
        wgpu->resolve_queries(commands, runner->queries, 0, 2, runner->resolved, 0);
        wgpu->copy_buffer(commands, runner->resolved, 0, runner->ticks, 0, 16);
    }
    if (timed)
        read_others(runner, &runner->before);
    uint64_t begun = clock_now_ns();
    runner->report->running = 1;
    wgpu_submit(&runner->device, commands);
    runner->report->running = 0;
    runner->report->wall_ns = (double)(clock_now_ns() - begun);
    if (timed)
        read_others(runner, &runner->after);
    wgpu->group_free(group);
}

/* ---- back ---- */

static bool take_time(struct runner *runner)
{
    const uint64_t *ticks = wgpu_map(&runner->device, runner->ticks, 16);
    if (ticks == NULL)
        return false;
    runner->report->event_ns =
        ticks[1] >= ticks[0] ? (double)(ticks[1] - ticks[0]) * runner->device.tick_ns : -1.0;
    runner->device.wgpu.unmap(runner->ticks);
    runner->report->waited_ns =
        runner->device.software && runner->report->event_ns > 0.0
            ? noise_between(&runner->before, &runner->after, (uint64_t)runner->report->event_ns,
                            runner->control->core_count)
            : 0;
    return true;
}

static bool take_results(struct calling *calling)
{
    struct runner *runner = calling->runner;
    const struct wgpu *wgpu = &runner->device.wgpu;
    const struct call *call = calling->call;
    wgpu_handle commands = wgpu_encoder(&runner->device);
    uint64_t at = 0;
    for (uint32_t i = call->input_count; i < calling->count; i++) {
        wgpu->copy_buffer(commands, runner->buffers[i].handle, 0, runner->staging, at,
                          bytes_of(calling, i));
        at += bytes_of(calling, i);
    }
    wgpu_submit(&runner->device, commands);
    const unsigned char *bytes = wgpu_map(&runner->device, runner->staging, at);
    at = 0;
    for (uint32_t i = call->input_count; bytes != NULL && i < calling->count; i++) {
        memcpy(runner->outputs + call->offsets[i], bytes + at, bytes_of(calling, i));
        at += bytes_of(calling, i);
    }
    if (bytes != NULL)
        wgpu->unmap(runner->staging);
    return bytes != NULL;
}

static void answer_call(struct runner *runner)
{
    struct device *device = &runner->device;
    struct call call = runner->control->call;
    struct calling calling = {.runner = runner, .call = &call, .plan = &runner->control->plan};
    calling.count = call.input_count + call.output_count + call.workspace_count;
    runner->report->event_ns = runner->report->wall_ns = 0.0;
    if (calling.count > CALL_POINTERS_MAX || calling.plan->pass_count > LAUNCHES_MAX) {
        report(runner, REPORT_BROKEN, "a call that is too large");
        return;
    }
    calling.beyond = binds_beyond(&calling);
    wgpu_watch(device);
    make_buffers(&calling);
    if (call.timed) {
        fill(&calling, 1);
        launch(&calling, false);
    }
    fill(&calling, 0);
    launch(&calling, true);
    bool back = take_time(runner) && take_results(&calling);
    if (!wgpu_went_well(device))
        report(runner, device->lost ? REPORT_FAULT : REPORT_REFUSED, device->said);
    else if (!back)
        report(runner, REPORT_FAULT, "its results cannot be read");
}

enum { SOURCE_MOST = 2 << 20, QUERIES = 2, TICKS_BYTES = 256, SWEEP_BYTES = 128 << 20 };

/* ---- its start ---- */

static void map_memory(struct runner *runner)
{
    runner->control = map_shared(WIRE_CONTROL, sizeof *runner->control, PROT_READ, 0);
    const struct webgpu_control *control = runner->control;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != control->parent)
        _exit(RUNNER_EXIT);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    close_range(WIRE_FIRST_OTHER, ~0u, 0);
    runner->report = map_shared(WIRE_REPORT, sizeof *runner->report, PROT_READ | PROT_WRITE, 0);
    runner->inputs = map_shared(WIRE_INPUTS, control->inputs_bytes, PROT_READ, 0);
    runner->outputs = map_shared(WIRE_OUTPUTS, control->outputs_bytes, PROT_READ | PROT_WRITE, 0);
}

/* A driver that computes on the CPU does so on the lane's cores alone. */
static void stay_on_cores(const struct webgpu_control *control)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (uint32_t i = 0; i < control->core_count && i < WIRE_CORES_MAX; i++)
        CPU_SET((size_t)control->cores[i], &cores);
    if (control->core_count > 0)
        (void)sched_setaffinity(0, sizeof cores, &cores);
}

/* Each thread of such a driver has a core of its own, as far as there are cores: the scheduler
 * would leave two of them on one for a process's whole life, which then computes at half of its
 * rate. */
static void spread_over_cores(const struct webgpu_control *control)
{
    uint32_t count = control->core_count < WIRE_CORES_MAX ? control->core_count : WIRE_CORES_MAX;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return;
    uint32_t turn = 0;
    for (struct dirent *entry = readdir(tasks); count > 0 && entry != NULL;
         entry = readdir(tasks)) {
        cpu_set_t core;
        if (entry->d_name[0] == '.')
            continue;
        CPU_ZERO(&core);
        CPU_SET((size_t)control->cores[turn++ % count], &core);
        (void)sched_setaffinity((pid_t)strtol(entry->d_name, NULL, 10), sizeof core, &core);
    }
    closedir(tasks);
}

static void make_ready(struct runner *runner)
{
    struct device *device = &runner->device;
    struct err err = {0};
    stay_on_cores(runner->control);
    if (wgpu_open(&device->wgpu, runner->control->library, &err) != 0 ||
        wgpu_device_open(device, runner->control->adapter, &err) != 0)
        give_up("%s", err.message);
    struct wgpu_query_descriptor queries = {.type = WGPU_QUERY_TIMESTAMP, .count = QUERIES};
    wgpu_watch(device);
    runner->queries = device->wgpu.create_queries(device->handle, &queries);
    runner->resolved =
        wgpu_buffer(device, WGPU_BUFFER_QUERY_RESOLVE | WGPU_BUFFER_COPY_SRC, TICKS_BYTES);
    runner->ticks = wgpu_buffer(device, WGPU_BUFFER_MAP_READ | WGPU_BUFFER_COPY_DST, TICKS_BYTES);
    prefer_as_victim();
    wgpu_bound_memory(device, 4 * (runner->control->inputs_bytes + runner->control->outputs_bytes));
    if (device->software)
        spread_over_cores(runner->control);
    else
        runner->sweep = wgpu_buffer(device, WGPU_BUFFER_COPY_DST, SWEEP_BYTES);
    if (!wgpu_went_well(device))
        give_up("%s", device->said);
}

/* ---- the candidate ---- */

static void make_layout(struct runner *runner)
{
    static const uint32_t types[] = {WGPU_BINDING_READ_ONLY, WGPU_BINDING_STORAGE,
                                     WGPU_BINDING_UNIFORM};
    const struct wgpu *wgpu = &runner->device.wgpu;
    const struct plan *plan = &runner->control->plan;
    struct wgpu_layout_entry entries[WGSL_BINDINGS_MOST] = {0};
    for (uint32_t i = 0; i < plan->binding_count; i++) {
        entries[i].binding = plan->bindings[i].binding;
        entries[i].visibility = WGPU_STAGE_COMPUTE;
        entries[i].buffer.type = types[plan->bindings[i].kind];
    }
    const struct wgpu_list_descriptor group = {.count = plan->binding_count, .items = entries};
    runner->group_layout = wgpu->create_group_layout(runner->device.handle, &group);
    const struct wgpu_list_descriptor pipeline = {.count = 1, .items = &runner->group_layout};
    runner->pipeline_layout = wgpu->create_pipeline_layout(runner->device.handle, &pipeline);
}

static void make_pipelines(struct runner *runner, wgpu_handle module)
{
    const struct wgpu *wgpu = &runner->device.wgpu;
    const struct plan *plan = &runner->control->plan;
    struct wgpu_constant constants[WGSL_OVERRIDES_MOST] = {0};
    for (uint32_t i = 0; i < plan->constant_count; i++) {
        constants[i].key = wgpu_text(plan->constants[i].name);
        constants[i].value = plan->constants[i].number;
    }
    for (uint32_t i = 0; i < plan->pass_count; i++) {
        struct wgpu_pipeline_descriptor descriptor = {.layout = runner->pipeline_layout};
        descriptor.compute.module = module;
        descriptor.compute.entry = wgpu_text(plan->passes[i].entry);
        descriptor.compute.constant_count = plan->constant_count;
        descriptor.compute.constants = constants;
        runner->pipelines[i] = wgpu->create_pipeline(runner->device.handle, &descriptor);
    }
}

static void load(struct runner *runner)
{
    struct err err = {0};
    struct device *device = &runner->device;
    const struct plan *plan = &runner->control->plan;
    BUF_LOCAL(text, SOURCE_MOST);
    runner->report->status = REPORT_FINE;
    if (file_read(runner->control->artifact, &text, &err) != 0) {
        report(runner, REPORT_BROKEN, err.message);
        return;
    }
    if ((plan->f16 && !device->f16) || (plan->subgroups && !device->subgroups)) {
        report(runner, REPORT_REFUSED,
               plan->f16 && !device->f16 ? "this adapter has no shader-f16"
                                         : "this adapter has no subgroups");
        return;
    }
    wgpu_watch(device);
    wgpu_handle module = wgpu_module(device, buf_text(&text), text.length);
    make_layout(runner);
    bool well = wgpu_went_well(device); /* a pipeline of what failed would hide why */
    if (well) {
        wgpu_watch(device);
        make_pipelines(runner, module);
        well = wgpu_went_well(device);
    }
    if (!well)
        report(runner, REPORT_REFUSED, device->said);
}

/* ---- its life ---- */

int webgpu_runner_main(int argc, char **argv)
{
    static struct runner runner; /* zeroed, and too large for a stack */
    if (argc > 0)
        return webgpu_probe_main(argc, argv);
    map_memory(&runner);
    make_ready(&runner);
    say_done();
    for (;;) {
        wait_go();
        runner.report->status = REPORT_FINE;
        if (runner.control->command == WIRE_LOAD)
            load(&runner);
        else
            answer_call(&runner);
        say_done();
    }
}
