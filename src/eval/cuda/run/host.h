/* eval/cuda/run/host: the worker's side of a CUDA runner. Worker's measuring thread; a runner dies
 * with the thread that started it (PDEATHSIG).
 *
 *   starting -> warm (a spare) -> loaded -> calls ... -> spare again, after candidates that left it
 *                                                        whole; else reaped
 */
#ifndef EVAL_CUDA_RUN_HOST_H
#define EVAL_CUDA_RUN_HOST_H

#include "eval/backend/backend.h"
#include "eval/cuda/run/wire.h"

#include <sys/types.h>

struct gpu_host {
    struct subject subject; /* first */
    int pidfd, go, done, errors;
    struct gpu_control *control; /* the runner maps the same page read-only */
    const struct gpu_report *report;
    bool warm, reaped;
    bool used, spoilt; /* a candidate was loaded; it is not to be used for another one */
    const struct region *region;
    ino_t inputs_inode, outputs_inode; /* tell whether a spare still fits its region */
    struct program program;
    const struct names *facts; /* the lane's */
};

/* `prefix` (or NULL): a program and its arguments that start the runner: compute-sanitizer. */
int gpu_host_start(const struct lane_facts *lane, const struct region *region,
                   const char *const *prefix, struct gpu_host **host, struct err *err) MUST_USE;
int gpu_host_wait_warm(struct gpu_host *host, struct err *err) MUST_USE;
void gpu_host_close(struct gpu_host *host); /* kills the group, reaps, frees; NULL is fine */

/* A runner with the artifact loaded, a spare where one fits; `fresh`: one that never held a
 * candidate. ERR_CHILD: the artifact's own fault. */
int gpu_host_open(const struct lane_facts *lane, const struct region *region, const char *artifact,
                  const struct program *program, bool fresh, struct gpu_host **host,
                  struct err *err) MUST_USE;
int gpu_host_load(struct gpu_host *host, const char *artifact, struct err *err) MUST_USE;
int gpu_host_call(struct gpu_host *host, const struct call *call, uint64_t *elapsed_ns,
                  struct err *err) MUST_USE;

/* Keeps it for the next gpu_host_open() where its candidate left it whole; else as
 * gpu_host_close(). */
void gpu_host_give_back(struct gpu_host *host);
/* A spare for the region begins to get warm, where none does. */
void gpu_host_warm(const struct lane_facts *lane, const struct region *region);
/* Waits until no spare is still starting: before something is timed. */
void gpu_host_settle(void);
void gpu_host_discard(void); /* closes all spares */

/* Tells the runner to go and waits for its answer; ERR_TIMEOUT and ERR_CHILD leave no process. */
int gpu_host_await(struct gpu_host *host, uint64_t timeout_ms, struct err *err) MUST_USE;
int gpu_host_go(struct gpu_host *host, struct err *err) MUST_USE;

/* All that it wrote to stderr and was not read yet. */
struct buf;
void gpu_host_errors(struct gpu_host *host, struct buf *text);

#endif
