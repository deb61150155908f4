/* eval/webgpu/runner: the process that holds a device and one candidate's pipelines. All of its
 * code is ours and the driver's; a shader reaches what is bound, and nothing of that outlives a
 * call: all of it is written anew. Inside src/eval/webgpu/runner*.c. */
#pragma once

#include "eval/webgpu/device.h"
#include "eval/webgpu/wire.h"

struct runner_buffer { /* one tensor's, with its red zone where that is bound, too */
    wgpu_handle handle;
    uint64_t bytes; /* of the handle */
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
};

void webgpu_load(struct runner *runner);
void webgpu_call(struct runner *runner);
void webgpu_report(struct runner *runner, enum report_status status, const char *text);
