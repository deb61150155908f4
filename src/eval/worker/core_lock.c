#include "eval/worker/core_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* A descriptor with the lock; -1: another has it; -2: there is nothing to lock. */
static int lock_path(const char *path, int how)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -2;
    int result;
    do
        result = flock(fd, how | LOCK_NB);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return fd;
    bool taken = errno == EWOULDBLOCK;
    close(fd);
    return taken ? -1 : -2;
}

void core_lock_path(int core, char path[CORE_LOCK_PATH])
{
    const char *root = getenv("TWAGENT_LOCKS");
    if (root == NULL || strlen(root) > CORE_LOCK_PATH - 16)
        root = "/sys/devices/system/cpu";
    snprintf(path, CORE_LOCK_PATH, "%s/cpu%d", root, core);
}

static int lock_one(int core)
{
    char path[CORE_LOCK_PATH];
    core_lock_path(core, path);
    return lock_path(path, LOCK_EX);
}

bool core_lock_try_path(struct core_lock *lock, const char *path, bool shared)
{
    core_lock_release(lock);
    int fd = lock_path(path, shared ? LOCK_SH : LOCK_EX);
    if (fd >= 0)
        lock->fds[lock->count++] = fd;
    return fd != -1;
}

/* Whoever names a core twice would wait for himself. */
static bool named_before(const int *cores, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (cores[i] == cores[at])
            return true;
    return false;
}

bool core_lock_try(struct core_lock *lock, const int *cores, size_t count, int *busy)
{
    core_lock_release(lock);
    for (size_t i = 0; i < count && lock->count < CORE_LOCK_MOST; i++) {
        int fd = named_before(cores, i) ? -2 : lock_one(cores[i]);
        if (fd == -1) {
            *busy = cores[i];
            core_lock_release(lock); /* nobody waits while holding: there is no deadlock */
            return false;
        }
        if (fd >= 0)
            lock->fds[lock->count++] = fd;
    }
    return true;
}

void core_lock_release(struct core_lock *lock)
{
    while (lock->count > 0)
        close(lock->fds[--lock->count]);
}
