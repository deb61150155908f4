/* The disposable process: a device before there is a candidate, then its pipelines. */
#include "eval/webgpu/runner.h"

#include "base/buf.h"
#include "base/file.h"
#include "eval/runner/inside.h"
#include "eval/webgpu/probe.h"
#include "eval/webgpu/webgpu.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SOURCE_MOST = 2 << 20, QUERIES = 2, TICKS_BYTES = 256, SWEEP_BYTES = 128 << 20 };

void webgpu_report(struct runner *runner, enum report_status status, const char *text)
{
    runner->report->status = status;
    snprintf(runner->report->reason, sizeof runner->report->reason, "%s", text);
}

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
    if (!device->software)
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

void webgpu_load(struct runner *runner)
{
    struct err err = {0};
    struct device *device = &runner->device;
    const struct plan *plan = &runner->control->plan;
    BUF_LOCAL(text, SOURCE_MOST);
    runner->report->status = REPORT_FINE;
    if (file_read(runner->control->artifact, &text, &err) != 0) {
        webgpu_report(runner, REPORT_BROKEN, err.message);
        return;
    }
    if ((plan->f16 && !device->f16) || (plan->subgroups && !device->subgroups)) {
        webgpu_report(runner, REPORT_REFUSED,
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
        webgpu_report(runner, REPORT_REFUSED, device->said);
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
            webgpu_load(&runner);
        else
            webgpu_call(&runner);
        say_done();
    }
}
