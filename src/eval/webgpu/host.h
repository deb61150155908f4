/* eval/webgpu/host: what is WebGPU's own of a runner's host. Worker's measuring thread. */
#pragma once

#include "eval/runner/host.h"
#include "eval/webgpu/wire.h"

struct webgpu_host {
    struct host base; /* first */
    struct webgpu_control *control;
    const struct webgpu_report *report;
    struct program program;
    const struct names *facts; /* the lane's */
};

/* With the artifact loaded, a spare where one fits; `fresh`: one that never held a candidate.
 * ERR_CHILD: the candidate's own fault. */
int webgpu_host_open(const struct lane_facts *lane, const struct region *region,
                     const char *artifact, const struct program *program, bool fresh,
                     struct webgpu_host **host, struct err *err) MUST_USE;
int webgpu_host_call(struct webgpu_host *host, const struct call *call, uint64_t *elapsed_ns,
                     struct err *err) MUST_USE;
void webgpu_host_close(struct webgpu_host *host); /* NULL is fine */
/* A spare for the region begins to get warm, where there is none. */
void webgpu_host_warm(const struct lane_facts *lane, const struct region *region);
