/* process/spawn: the one place where children are started. Each gets a process group of its own, no
 * descriptor of ours but those named, no signal blocked or ignored, no core file, and dies with the
 * thread that started it unless it `outlives` us. Any thread. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SPAWN_PASSED_MAX = 16 };

struct spawn_spec {
    const char *const *argv;   /* NULL-terminated; argv[0] is a path */
    const char *name;          /* what spawn_run() calls it; NULL: argv[0] */
    const char *const *env;    /* NULL: an empty environment, never ours */
    const char *folder;        /* working directory; NULL: "/" */
    const int *fds;            /* become 3, 4, ... in the child; NULL: none */
    size_t fd_count;           /* at most SPAWN_PASSED_MAX */
    uint64_t memory_max_bytes; /* RLIMIT_AS; 0: none */
    uint64_t file_max_bytes;   /* RLIMIT_FSIZE; 0: none */
    uint64_t cpu_max_s;        /* RLIMIT_CPU; 0: none */
    unsigned threads_max;      /* spawn_run() ends who has more; 0: none */
    bool outlives;             /* a session of its own, which goes on without us */
};

/* `standard` become stdin, stdout and stderr; -1: /dev/null. Returns after the exec, so a program
 * that cannot run is an error here. *pidfd (or NULL) is readable once the child has exited.
 * ERR_ENVIRONMENT, ERR_USAGE. */
int spawn(const struct spawn_spec *spec, const int standard[3], pid_t *pid, int *pidfd,
          struct err *err) MUST_USE;

/* Blocks until the child has exited and both streams are at their end; what is left of its group is
 * killed. The first bytes of stdout and stderr go to `out` and `errors` (NULL: /dev/null). Past
 * `timeout_ms` the group is killed: ERR_TIMEOUT. ERR_CHILD where it ends in another way than with
 * `exit_code`, or has too many threads; then returns the signal that killed it, or -1. */
int spawn_run(const struct spawn_spec *spec, uint64_t timeout_ms, int exit_code, struct buf *out,
              struct buf *errors, struct err *err) MUST_USE;

/* A child that runs our own code on, without exec; it dies with us. As fork(). */
pid_t spawn_fork(void);

siginfo_t spawn_reap(pid_t pid); /* waits for its end: how it ended */
siginfo_t spawn_kill(pid_t pid); /* the same, after KILL to its group */
