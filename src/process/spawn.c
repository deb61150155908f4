#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors go first to numbers above all targets, so that no dup2 closes one still to come. */
int runner_spawn(const char *const *argv, const char *const *env, const char *folder,
                 const int *sources, int count, pid_t *pid, int *pidfd, struct err *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int moved[SPAWN_PASSED_MAX];
    pid_t child = 0;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    int result = 0;
    for (int i = 0; i < count; i++) {
        moved[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, count);
        if (moved[i] < 0)
            result = errno;
        else
            posix_spawn_file_actions_adddup2(&actions, moved[i], i);
    }
    if (folder != NULL)
        posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (result == 0)
        result = posix_spawn(&child, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv,
                             (char *const *)(uintptr_t)env);
    for (int i = 0; i < count; i++)
        if (moved[i] >= 0)
            close(moved[i]);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (result != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, result, "cannot start a runner (%s)", argv[0]);
    *pid = child;
    *pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    if (*pidfd < 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "pidfd_open");
    fcntl(*pidfd, F_SETFD, FD_CLOEXEC);
    return 0;
}
