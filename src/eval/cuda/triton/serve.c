/* The server's two ends that are ours: the worker, who starts it, and the process above the Python,
 * which puts that into a sandbox and removes its temporary folder when it has ended. */
#include "eval/cuda/compile/serve.h"
#include "base/file.h"
#include "eval/cuda/triton/triton.h"
#include "process/spawn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int triton_serve_start(const struct interpreter *interpreter, const char *script)
{
    static struct served server;
    const char *const argv[] = {
        file_program_path(), "cuda-compile",           "--triton-serve", interpreter->path,
        interpreter->prefix, interpreter->base_prefix, script,           NULL};
    return serve_start(&server, argv);
}

static int serve_in(const struct interpreter *interpreter, const char *script, const char *folder,
                    struct err *err)
{
    ARENA_LOCAL(arena);
    const char *argv[TRITON_ARGS_MAX], *env[TRITON_ENV_MAX];
    const int end = SERVE_FD;
    pid_t child;
    size_t count = triton_command(arena, interpreter, "reference", NULL, folder, script, argv);
    argv[count++] = folder;
    argv[count++] = "--serve";
    argv[count] = NULL;
    triton_env(arena, folder, env);
    const struct spawn_spec spec = {
        .argv = argv, .env = env, .folder = folder, .fds = &end, .fd_count = 1};
    if (spawn(&spec, (int[]){-1, -1, -1}, &child, NULL, err) != 0)
        return -1;
    close(end);
    (void)spawn_reap(child);
    return 0;
}

int triton_serve_main(int argc, char **argv)
{
    struct err err = {0}, ignored;
    char folder[] = "/tmp/twagent-triton-XXXXXX";
    if (argc != 4) {
        fprintf(stderr, "cuda-compile --triton-serve: expected PYTHON PREFIX BASE SCRIPT\n");
        return err_exit_code(ERR_USAGE);
    }
    (void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0); /* the socket's end is ours; then the folder goes */
    if (mkdtemp(folder) == NULL)
        return err_exit_code(ERR_ENVIRONMENT);
    const struct interpreter interpreter = {
        .path = argv[0], .prefix = argv[1], .base_prefix = argv[2]};
    int status = serve_in(&interpreter, argv[3], folder, &err);
    (void)(file_remove_tree(folder, &ignored) == 0);
    return status == 0 ? 0 : err_exit_code(err.code);
}
