/* eval/cpu/host: the worker's side of a runner process. Nothing that comes out of it is believed:
 * it can say "done" and it can die, and everything else is measured from outside.
 * Worker's measuring thread; a runner dies with the thread that started it (PDEATHSIG).
 *
 *   starting -> warm (a spare) -> loaded -> calls ... -> reaped
 */
#ifndef EVAL_CPU_HOST_H
#define EVAL_CPU_HOST_H

#include "eval/backend/backend.h"
#include "eval/cpu/wire.h"

#include <sys/types.h>

struct host {
    struct subject subject; /* first */
    int pidfd, go, done, errors;
    struct control *control; /* the runner maps the same page read-only */
    bool warm, paused, reaped;
    const struct region *region; /* who it was started for: tells whether a spare fits */
    ino_t inputs_inode, outputs_inode;
    const char *env;   /* its own entries, joined; owned */
    int64_t others_ns; /* CPU time of all threads but the caller's; -1: not yet looked at */
    struct hold *hold; /* while its threads are held: from a call to the pause after it */
};

/* A process that maps the region and waits for an artifact. `env` (or NULL) comes on top. */
int host_start(const struct lane_facts *lane, const struct region *region, const char *const *env,
               struct host **host, struct err *err) MUST_USE;
int host_wait_warm(struct host *host, struct err *err) MUST_USE;
int host_load(struct host *host, const char *artifact, struct err *err) MUST_USE;
void host_close(struct host *host); /* kills the group, reaps, frees; NULL is fine */

/* Waits until `done` was said `times` times. *said counts them (also on failure). ERR_TIMEOUT and
 * ERR_CHILD leave no process behind. */
int host_await(struct host *host, unsigned times, uint64_t deadline_ns, unsigned *said,
               struct err *err) MUST_USE;
int host_go(struct host *host, struct err *err) MUST_USE;

/* One spare an environment is kept warm, so that open() costs a load and no more. */
int host_take(const struct lane_facts *lane, const struct region *region, const char *const *env,
              struct host **host, struct err *err) MUST_USE;
void host_settle(void); /* waits until no spare is still starting: before something is timed */

#endif
