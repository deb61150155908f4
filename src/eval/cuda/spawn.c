/* See spawn.h. */
#include "eval/cuda/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENV_MOST = 250 };

/* Devices are counted as nvidia-smi counts them, and modules are on the device once loaded. */
static void environment(const char *env[ENV_MOST + 1])
{
    size_t count = 0;
    env[count++] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
    env[count++] = "CUDA_MODULE_LOADING=EAGER";
    for (char **entry = environ; *entry != NULL && count < ENV_MOST; entry++)
        if (strncmp(*entry, "CUDA_DEVICE_ORDER=", 18) != 0 &&
            strncmp(*entry, "CUDA_MODULE_LOADING=", 20) != 0)
            env[count++] = *entry;
    env[count] = NULL;
}

/* Descriptors go first to numbers above all targets, so that no dup2 closes one still to come. */
int cuda_spawn(const char *const *argv, const int *sources, int count, pid_t *pid, int *pidfd,
               struct err *err)
{
    const char *env[ENV_MOST + 1];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int moved[SPAWN_PASSED_MAX];
    pid_t child = 0;
    environment(env);
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
