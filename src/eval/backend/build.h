/* eval/backend/build: trusted sources (baselines, C references) built on the measuring thread.
 * Inside src/eval/measure/session*.c and src/eval/reference; build_run() is also for commands.
 * Blocking. */
#pragma once

#include "eval/backend/backend.h"

/* Runs a compiler's command to its end; ERR_CHILD and ERR_TIMEOUT with its first lines. */
int build_run(const struct process_spec *spec, struct err *err) MUST_USE;
/* The same; what it wrote to stderr goes to `errors` where it fails. *killed: it or one of its
 * children was, by somebody and not for what it read. */
int build_run_heard(const struct process_spec *spec, struct buf *errors, bool *killed,
                    struct err *err) MUST_USE;
/* Whether a compiler that exited tells that one of its children was killed. */
bool build_child_killed(const char *errors, size_t length);

/* What a compiler is to read. No fsync: a build that a crash cuts off is made again. ERR_LIMIT. */
int build_write(const char *folder, const char *name, const struct buf *text,
                struct err *err) MUST_USE;

/* Builds `baseline` in a new folder `parent/name`; *artifact is in `arena`. */
int build_baseline(const struct backend *backend, const struct lane_facts *lane,
                   const struct problem *problem, const struct baseline_spec *baseline,
                   enum build_flavour flavour, const char *parent, const char *name,
                   struct arena *arena, const char **artifact, struct err *err) MUST_USE;
