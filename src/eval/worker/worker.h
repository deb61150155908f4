/* eval/worker: `twagent worker`: one lane's evaluator; trusted. One JSON request a line on stdin,
 * JSON records a line on stdout (docs/worker-protocol.md). It owns inputs, expected outputs, clock
 * and verdict. Compiles the next candidate while the present one is checked, and lets nothing of
 * ours run on its cores while one is timed.
 *
 *   request  -> compiling -> (waiting) -> measuring (check, time, sanitize, profile) -> answered
 */
#pragma once

#include "eval/backend/backend.h"

struct worker_options {
    const struct backend *backend;
    const char *cores;  /* "0-1" or "0,1"; NULL: all that this process may use */
    int gpu_index;      /* of a backend with GPUs */
    const char *folder; /* for builds; NULL: a private one under /tmp, removed at the end */
};

int worker_main(const struct worker_options *options); /* returns an exit code at end of stdin */
