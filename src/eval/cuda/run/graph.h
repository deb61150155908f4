/* eval/cuda/run/graph: a candidate's module on the device, and its launch plan, as a CUDA graph or
 * queued. Runner process only. What goes wrong is a status and a reason of wire.h. */
#pragma once

#include "eval/cuda/driver/driver.h"
#include "eval/cuda/run/wire.h"

struct fault {
    enum report_status status;
    bool memory; /* the device had none left */
    char reason[WIRE_REASON_MAX];
};

struct graph_modules { /* one for each cubin of the artifact that a plan launches */
    size_t count;
    struct {
        uint64_t at; /* in the artifact */
        cu_module module;
    } of[LAUNCHES_MAX];
};

struct graph {
    const struct driver *driver;
    const struct plan *plan;
    const cu_pointer *pointers; /* by the numbers that the plan uses */
    cu_stream stream;
    struct graph_modules modules;
    cu_pointer scratch; /* of the plan's scratch_bytes; 0: none */
    cu_function functions[LAUNCHES_MAX];
    struct cu_tensor_map maps[TENSOR_MAPS_MAX];
    cu_graph_exec exec;
    bool borrowed; /* the modules: graph_close() leaves them loaded; the caller's to set */
    bool local_memory;
    bool warm;                  /* the caller's to set: a launch goes before the one that counts */
    volatile uint32_t *running; /* NULL, or where it is told what runs: RUNNING_... */
};

/* Takes `modules`, if they are the plan's; NULL: loads from `image` (an artifact) anew, with its
 * __device__ variables as the source says. All but these three is borrowed until graph_close(). */
int graph_open(const struct driver *driver, const void *image, const struct graph_modules *modules,
               const struct plan *plan, const cu_pointer *pointers, cu_stream stream,
               struct graph *graph, struct fault *fault) MUST_USE;
void graph_close(struct graph *graph);
void graph_unload(const struct driver *driver, struct graph_modules *modules);
/* What an earlier launch left in scratch memory is gone; queued. */
cu_result graph_clear(struct graph *graph) MUST_USE;

/* Captures the plan and puts it on the device, so that a launch has nothing left to do. Not where
 * it is a single launch, and warm: that is queued, which starts 1 us sooner than a graph. */
int graph_capture(struct graph *graph, struct fault *fault) MUST_USE;

/* The whole plan; not waited for. */
int graph_launch(struct graph *graph, struct fault *fault) MUST_USE;

/* Launch after launch, none of them waited for. */
int graph_queue(struct graph *graph, struct fault *fault) MUST_USE;

/* Launch after launch, each waited for: the one that fails is named. */
int graph_step(struct graph *graph, struct fault *fault) MUST_USE;

/* That of a kernel which runs, and not of what was asked for. */
bool graph_is_fault(cu_result result);

/* Says what a result of waiting means. `entry` NULL: any of the plan's. Returns -1. */
int graph_fault(const struct graph *graph, cu_result result, const char *entry,
                struct fault *fault);
