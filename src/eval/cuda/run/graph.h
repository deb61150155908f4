/* eval/cuda/run/graph: a candidate's module on the device, and its launch plan, as a CUDA graph or
 * queued. Runner process only. What goes wrong is a status and a reason of wire.h. */
#pragma once

#include "eval/cuda/driver/driver.h"
#include "eval/cuda/run/wire.h"

struct fault {
    enum report_status status;
    char reason[WIRE_REASON_MAX];
};

struct graph {
    const struct driver *driver;
    const struct plan *plan;
    const cu_pointer *pointers; /* by the numbers that the plan uses */
    cu_stream stream;
    cu_module module;
    cu_function functions[LAUNCHES_MAX];
    struct cu_tensor_map maps[TENSOR_MAPS_MAX];
    cu_graph_exec exec;
    bool borrowed; /* the module: graph_close() leaves it loaded; the caller's to set */
    bool local_memory;
    bool warm;                  /* the caller's to set: a launch goes before the one that counts */
    volatile uint32_t *running; /* NULL, or where it is told what runs: RUNNING_... */
};

/* Takes `module`; NULL: loads `image` (a cubin) anew, with its __device__ variables as the source
 * says. All but `graph` and `fault` is borrowed until graph_close(). */
int graph_open(const struct driver *driver, const void *image, cu_module module,
               const struct plan *plan, const cu_pointer *pointers, cu_stream stream,
               struct graph *graph, struct fault *fault) MUST_USE;
void graph_close(struct graph *graph);

/* Captures the plan and puts it on the device, so that a launch has nothing left to do. Not where
 * it is a single launch, and warm: that is queued, which starts 1 us sooner than a graph. */
int graph_capture(struct graph *graph, struct fault *fault) MUST_USE;

/* The whole plan; not waited for. */
int graph_launch(struct graph *graph, struct fault *fault) MUST_USE;

/* Launch after launch, each waited for: the one that fails is named. */
int graph_step(struct graph *graph, struct fault *fault) MUST_USE;

/* Says what a result of waiting means. `entry` NULL: any of the plan's. Returns -1. */
int graph_fault(const struct graph *graph, cu_result result, const char *entry,
                struct fault *fault);
