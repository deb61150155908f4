/* process/spawn: starting the worker's runners and their like. Any thread. */
#ifndef PROCESS_SPAWN_H
#define PROCESS_SPAWN_H

#include "base/err.h"

#include <sys/types.h>

enum { SPAWN_PASSED_MAX = 16 };

/* argv[0] in a process group of its own, in `folder` (NULL: here), with no signal blocked or
 * ignored. `sources` become its descriptors 0 to count - 1. ERR_ENVIRONMENT. */
int runner_spawn(const char *const *argv, const char *const *env, const char *folder,
                 const int *sources, int count, pid_t *pid, int *pidfd, struct err *err) MUST_USE;

#endif
