/* A build's command, run to its end by tests that have no loop. */
#pragma once

#include "base/buf.h"
#include "loop/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Its exit code. */
static inline int run_build(const struct process_spec *spec_of, struct buf *said)
{
    char chunk[4096];
    int fds[2], status;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(spec_of->folder) != 0)
            _exit(126);
        for (size_t i = 0; i < spec_of->pass_count; i++)
            dup2(fcntl(spec_of->pass_fds[i], F_DUPFD_CLOEXEC, 16), 3 + (int)i);
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        execve(spec_of->argv[0], (char *const *)(uintptr_t)spec_of->argv,
               (char *const *)(uintptr_t)spec_of->env);
        _exit(127);
    }
    close(fds[1]);
    for (ssize_t got; (got = read(fds[0], chunk, sizeof chunk)) > 0;)
        buf_add(said, chunk, (size_t)got);
    close(fds[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
