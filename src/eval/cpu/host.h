/* eval/cpu/host: what is the CPU's own of a runner's host: its spares, its load in two steps, calls
 * whose threads are held. Worker's measuring thread. */
#pragma once

#include "eval/cpu/left.h"
#include "eval/cpu/wire.h"
#include "eval/runner/host.h"

struct cpu_host {
    struct host base;        /* first */
    struct control *control; /* the runner maps the same page read-only */
    bool paused;
    const char *env;   /* its own entries, joined; owned */
    int64_t others_ns; /* CPU time of all threads but the caller's; -1: not yet looked at */
    struct left_places places;
    struct left before;         /* its process, before the artifact was loaded; then, when it was */
    const char *spoilt_by_load; /* what that has changed; NULL: nothing */
    unsigned own_threads;       /* of what it has to compute with, before anything was loaded */
    struct hold *hold;          /* while its threads are held: from a call to the pause after it */
};

extern const struct host_kind cpu_host_kind;

/* A warm process that maps the region and waits for an artifact; `env` (or NULL) comes on top. One
 * spare an environment is kept, so that open() costs a load and no more. */
int cpu_host_take(const struct lane_facts *lane, const struct region *region,
                  const char *const *env, struct cpu_host **host, struct err *err) MUST_USE;
void cpu_host_settle(void); /* host_settle() of the spares */
