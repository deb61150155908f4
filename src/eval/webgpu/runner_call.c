/* One call is one launch of all passes, on memory that was all written just before: inputs and red
 * zones as the worker has them, outputs and workspaces with bits that mean nothing. Before a timed
 * one the passes run once on the same memory, since drivers compile at the first use; what that
 * left is written over, too.
 *
 *   buffers -> (filled, passes) -> filled -> caches swept -> timestamp, passes, timestamp -> back
 */
#include "base/clock.h"
#include "eval/runner/inside.h"
#include "eval/webgpu/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOUND_BEYOND = 256 }; /* bytes of the red zone behind a tensor that a checked call binds */

struct calling {
    struct runner *runner;
    const struct call *call;
    const struct plan *plan;
    uint32_t count;                    /* of tensors */
    uint64_t bound[CALL_POINTERS_MAX]; /* bytes of each that are bound */
};

/* What lies behind a tensor is bound with it where results are checked, so that who reads there
 * reads numbers that mean nothing, and who writes there is found: a driver would give zeros, or the
 * last element, and forget the write. Not where the source asks how long an array is. */
static uint64_t bound_bytes(const struct calling *calling, uint32_t tensor)
{
    uint64_t bytes = (calling->plan->tensor_bytes[tensor] + 3) / 4 * 4;
    bool beyond = !calling->call->timed && calling->plan->measures_arrays == 0;
    return (bytes < 16 ? 16 : bytes) + (beyond ? BOUND_BEYOND : 0);
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
    uint64_t back = 0;
    for (uint32_t i = 0; i < calling->count; i++) {
        calling->bound[i] = bound_bytes(calling, i);
        make_buffer(runner, &runner->buffers[i],
                    WGPU_BUFFER_STORAGE | WGPU_BUFFER_COPY_DST | WGPU_BUFFER_COPY_SRC,
                    calling->bound[i]);
        back += is_input(calling, i) ? 0 : calling->bound[i];
    }
    make_buffer(runner, &runner->dims, WGPU_BUFFER_UNIFORM | WGPU_BUFFER_COPY_DST,
                (calling->call->dim_count * 4 + 15) / 16 * 16);
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
    uint64_t bytes = calling->bound[tensor], own = calling->plan->tensor_bytes[tensor];
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
                           calling->bound[i]);
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
        const struct runner_buffer *buffer =
            binding->kind == PLAN_DIMS ? &runner->dims : &runner->buffers[binding->tensor];
        entries[i].binding = binding->binding;
        entries[i].buffer = buffer->handle;
        entries[i].size = buffer->bytes;
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
    uint64_t begun = clock_now_ns();
    runner->report->running = 1;
    wgpu_submit(&runner->device, commands);
    runner->report->running = 0;
    runner->report->wall_ns = (double)(clock_now_ns() - begun);
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
                          calling->bound[i]);
        at += calling->bound[i];
    }
    wgpu_submit(&runner->device, commands);
    const unsigned char *bytes = wgpu_map(&runner->device, runner->staging, at);
    at = 0;
    for (uint32_t i = call->input_count; bytes != NULL && i < calling->count; i++) {
        memcpy(runner->outputs + call->offsets[i], bytes + at, calling->bound[i]);
        at += calling->bound[i];
    }
    if (bytes != NULL)
        wgpu->unmap(runner->staging);
    return bytes != NULL;
}

void webgpu_call(struct runner *runner)
{
    struct device *device = &runner->device;
    struct call call = runner->control->call;
    struct calling calling = {.runner = runner, .call = &call, .plan = &runner->control->plan};
    calling.count = call.input_count + call.output_count + call.workspace_count;
    runner->report->event_ns = runner->report->wall_ns = 0.0;
    if (calling.count > CALL_POINTERS_MAX || calling.plan->pass_count > LAUNCHES_MAX) {
        webgpu_report(runner, REPORT_BROKEN, "a call that is too large");
        return;
    }
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
        webgpu_report(runner, device->lost ? REPORT_FAULT : REPORT_REFUSED, device->said);
    else if (!back)
        webgpu_report(runner, REPORT_FAULT, "its results cannot be read");
}
