/* eval/cuda/run/host: what is CUDA's own of a runner's host: its report, and that it is a spare
 * again after candidates that left it whole. Worker's measuring thread. */
#pragma once

#include "eval/cuda/run/wire.h"
#include "eval/runner/host.h"

struct gpu_host {
    struct host base;            /* first */
    struct gpu_control *control; /* the runner maps the same page read-only */
    const struct gpu_report *report;
    bool used;           /* a candidate was loaded */
    unsigned given_back; /* the last of all has the highest number */
    struct program program;
    struct arena *arena;       /* of `variants` */
    struct variants *variants; /* of the program's launches; NULL: its front matter says it all */
    const struct names *facts; /* the lane's */
};

/* `prefix` (or NULL): a program and its arguments that start the runner: compute-sanitizer.
 * `profiles`: it is for profiles and nothing else. */
int gpu_host_start(const struct lane_facts *lane, const struct region *region,
                   const char *const *prefix, bool profiles, struct gpu_host **host,
                   struct err *err) MUST_USE;
int gpu_host_wait_warm(struct gpu_host *host, struct err *err) MUST_USE;
void gpu_host_close(struct gpu_host *host); /* host_close(); NULL is fine */
bool gpu_host_fits(const struct gpu_host *host, const struct lane_facts *lane,
                   const struct region *region);

/* A runner with the artifact loaded, a spare where one fits; `fresh`: one that never held a
 * candidate. ERR_CHILD: the artifact's own fault. */
int gpu_host_open(const struct lane_facts *lane, const struct region *region, const char *artifact,
                  const struct program *program, bool fresh, struct gpu_host **host,
                  struct err *err) MUST_USE;
/* What `program` was built to. */
int gpu_host_load(struct gpu_host *host, const struct program *program, const char *artifact,
                  struct err *err) MUST_USE;
/* The plan of a call for what was loaded: plan_make_of(). */
int gpu_host_plan(const struct gpu_host *host, const struct call *call, struct plan *plan,
                  struct err *err) MUST_USE;
int gpu_host_call(struct gpu_host *host, const struct call *call, uint64_t *elapsed_ns,
                  struct err *err) MUST_USE;

/* Keeps it for the next gpu_host_open() where its candidate left it whole; else as
 * gpu_host_close(). */
void gpu_host_give_back(struct gpu_host *host);
/* A spare for the region begins to get warm, where none does. Of the lane its number must be known.
 * gpu_host_warm() ends spares of other regions, gpu_host_begin() leaves them alone. */
void gpu_host_warm(const struct lane_facts *lane, const struct region *region);
void gpu_host_begin(const struct lane_facts *lane, const struct region *region);
/* Waits until no spare is still starting: before something is timed. */
void gpu_host_settle(void);
void gpu_host_discard(void); /* closes all spares */

/* Tells the runner to go and waits for its answer. */
int gpu_host_ask(struct gpu_host *host, uint64_t timeout_ms, struct err *err) MUST_USE;
int gpu_host_await(struct gpu_host *host, uint64_t timeout_ms, struct err *err) MUST_USE;
