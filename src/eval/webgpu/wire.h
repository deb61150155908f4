/* eval/webgpu/wire: what host and WebGPU runner say to each other, as eval/runner/wire.h: a control
 * page that only the host can write, a report page that the runner fills, two eventfds. The
 * runner's code is ours; shaders reach what is bound and no page.
 *
 *   host                                  runner
 *   spawn, adapter and regions set  -->   library, device
 *                                   <--   done (warm; may wait here as a spare)
 *   LOAD, artifact, plan, go        -->   the module and its pipelines
 *                                   <--   done
 *   CALL, call, plan, go            -->   calls
 *                                   <--   done ... and so on
 */
#pragma once

#include "eval/backend/subject.h"
#include "eval/runner/wire.h"
#include "eval/webgpu/plan.h"

enum { WIRE_REASON_MAX = 1600, WIRE_CORES_MAX = 64 };
enum { WIRE_LOAD, WIRE_CALL };

struct webgpu_control {
    int32_t parent; /* the runner ends where this is not who started it */
    int32_t adapter;
    uint64_t inputs_bytes, outputs_bytes;
    uint32_t core_count; /* where an adapter that computes on the CPU does so */
    int32_t cores[WIRE_CORES_MAX];
    uint32_t command;
    char library[WIRE_PATH_MAX], artifact[WIRE_PATH_MAX];
    struct call call;
    struct plan plan;
};

struct webgpu_report {
    uint32_t status;
    char reason[WIRE_REASON_MAX];
    double event_ns, wall_ns; /* the passes by two timestamps; by the clock, around them */
    uint64_t waited_ns;       /* meanwhile, as subject.h has it */
    uint32_t running;         /* passes were given to the device, and have not ended */
};
