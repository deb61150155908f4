/* eval/worker/core_lock: one twagent at a time times on a core of this machine, whoever runs it. A
 * lock is flock(2) on the core's own folder in /sys: it is root's and readable by all, so that
 * users share it, nobody can put something else in its place, and the kernel drops it with the
 * process, however that ends. $TWAGENT_LOCKS names another folder with folders cpu0, cpu1, ...: for
 * tests, which need not wait for each other. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CORE_LOCK_MOST = 64, CORE_LOCK_PATH = 512 };

struct core_lock { /* zero-initialize */
    int fds[CORE_LOCK_MOST];
    size_t count;
};

/* All of them or none, at once. False: *busy is one that another process has. A core without such a
 * folder (no /sys) cannot be locked and counts as free. The lock of a process is not its
 * children's: descriptors are closed on exec. */
bool core_lock_try(struct core_lock *lock, const int *cores, size_t count, int *busy);
/* The same for a GPU's own folder in /sys, or a file in it; `shared`: with others who ask so. */
bool core_lock_try_path(struct core_lock *lock, const char *path, bool shared);
void core_lock_path(int core, char path[CORE_LOCK_PATH]); /* the folder that is locked */
void core_lock_release(struct core_lock *lock);           /* harmless where none is held */

/* Who has the lock of a core, or of `folder` where it is not NULL: "pid 4711 (twagent run matmul,
 * started 13:02:11)". "" where that cannot be seen: it is gone, or in another container. */
void core_lock_holder(int core, const char *folder, char *text, size_t size);
