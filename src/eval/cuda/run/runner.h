/* eval/cuda/run/runner: the process that holds a CUDA context and one candidate's cubin. All of its
 * code is ours; device code reaches its device memory and, through the registered regions, no
 * expected output and no clock. Inside src/eval/cuda/run/runner*.c. */
#pragma once

#include "eval/cuda/driver/device.h"
#include "eval/cuda/run/crowd.h"
#include "eval/cuda/run/graph.h"
#include "eval/cuda/run/service.h"
#include "eval/cuda/run/wire.h"

struct gpu_runner {
    const struct gpu_control *control;
    struct gpu_report *report;
    unsigned char *inputs, *outputs; /* the regions, registered where that works */
    struct driver driver;
    struct device device;
    cu_context context;
    cu_stream stream;
    cu_event first, begin, end; /* first: before memory is restored */
    struct service service;
    struct scrub scrub;
    struct crowd crowd;
    bool crowd_asked;
    cu_pointer device_inputs, device_outputs; /* as large as the regions, and TENSORS_SLACK */
    cu_pointer kept;                          /* outputs of a launch before the one that counts */
    size_t kept_bytes;
    cu_pointer sweep;                                /* twice the L2, to empty it */
    size_t inputs_bytes, outputs_bytes, sweep_bytes; /* of the three: all that is mapped */
    void *image;                                     /* the cubin */
    size_t image_bytes;
    bool variables;               /* it has some of its own */
    struct graph_modules modules; /* of the last call that said `stays` */
    double last_ns;
};

/* Company has the second half of the sweep's memory; what lies before it is anybody's. */
static inline size_t runner_crowd_from(const struct gpu_runner *runner)
{
    return runner->sweep_bytes / 2 / SERVICE_MAPPED_BYTES * SERVICE_MAPPED_BYTES;
}

/* A call as control->call and control->plan say; fills the report. */
void runner_call(struct gpu_runner *runner);

/* As the report has it; `text` is cut. */
void runner_tell(struct gpu_runner *runner, enum report_status status, const char *text);

/* Whether a launch goes before the one that is timed, where the last one took `last_ns` (0: none
 * did): not of a long kernel, nor of one that could leave something in variables of its own. */
bool runner_warms_up(const struct gpu_runner *runner, double last_ns);
void runner_forget(struct gpu_runner *runner); /* unloads the modules that stayed */
