/* From a spec to a running child with pipes. */
#include "loop/process_private.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

struct pipes {
    int input[2], output[2], errors[2]; /* [0] is read, [1] written */
};

static bool open_pipes(struct pipes *pipes, bool with_input)
{
    *pipes = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    return (!with_input || pipe2(pipes->input, O_CLOEXEC) == 0) &&
           pipe2(pipes->output, O_CLOEXEC) == 0 && pipe2(pipes->errors, O_CLOEXEC) == 0;
}

static void close_pipes(struct pipes *pipes)
{
    int *const all[] = {pipes->input, pipes->output, pipes->errors};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        close_fd(&all[i][0]);
        close_fd(&all[i][1]);
    }
}

int process_spawn(const struct process_spec *spec, struct spawned *spawned, struct err *err)
{
    const struct spawn_spec child = {.argv = spec->argv,
                                     .env = spec->env,
                                     .folder = spec->folder,
                                     .fds = spec->pass_fds,
                                     .fd_count = spec->pass_count,
                                     .memory_max_bytes = spec->memory_max_bytes,
                                     .file_max_bytes = spec->file_max_bytes,
                                     .cpu_max_s = spec->cpu_max_s};
    struct pipes pipes;
    int status = 0;
    if (!open_pipes(&pipes, spec->input != NULL || spec->lines))
        status = err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make pipes for a child");
    else
        status = spawn(&child, (int[]){pipes.input[0], pipes.output[1], pipes.errors[1]},
                       &spawned->pid, &spawned->pidfd, err);
    if (status == 0) {
        spawned->input = pipes.input[1];
        spawned->output = pipes.output[0];
        spawned->errors = pipes.errors[0];
        pipes.input[1] = pipes.output[0] = pipes.errors[0] = -1;
    }
    close_pipes(&pipes);
    return status;
}
