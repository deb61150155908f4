/* The run's own log and report have what it says; what it prints is kept in memory until it runs,
 * for the case that it does not come so far. */
#include "cli/mcp/detached.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/find/control.h"
#include "cli/options/command.h"
#include "process/spawn.h"

#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP_MS = 50, STEPS = 20 * 60 };

static int start(int argc, char **argv, int said, pid_t *pid, struct err *err)
{
    extern char **environ;
    MEM_LOCAL const char **words = (const char **)mem_array((size_t)argc + 2, sizeof *words);
    words[0] = file_program_path();
    for (int i = 0; i < argc; i++)
        words[i + 1] = argv[i];
    return spawn(
        &(struct spawn_spec){
            .argv = words, .env = (const char *const *)environ, .folder = ".", .outlives = true},
        (const int[3]){-1, said, said}, pid, NULL, err);
}

static int ended(int status, int said)
{
    char bytes[4096];
    lseek(said, 0, SEEK_SET);
    for (ssize_t length; (length = read(said, bytes, sizeof bytes)) > 0;)
        fwrite(bytes, 1, (size_t)length, stderr);
    return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : EXIT_ENVIRONMENT;
}

int detached_main(int argc, char **argv)
{
    ARENA_LOCAL(arena);
    struct settings settings;
    struct err err = {0};
    const char *positionals[4];
    size_t count;
    if (settings_load(arena, COMMAND_RUN, argc - 1, argv + 1, &settings, positionals, 4, &count,
                      &err))
        return command_fail(&err);
    MEM_LOCAL char *folder = control_folder(&settings);
    int said = memfd_create("said", MFD_CLOEXEC);
    pid_t pid;
    if (start(argc, argv, said, &pid, &err))
        return command_fail(&err);
    for (int i = 0, status; i < STEPS; i++) {
        struct run_record run;
        if (waitpid(pid, &status, WNOHANG) == pid)
            return ended(status, said);
        if (control_find(&settings, arena, folder, NULL, false, &run, &err) == 0 &&
            run.pid == pid) {
            const char *const words[] = {
                file_program_path(), "status", "--json", "--", run.id, NULL};
            execv(words[0], (char *const *)words);
        }
        poll(NULL, 0, STEP_MS);
    }
    fprintf(stderr, "twagent: the run did not begin within a minute\n");
    return EXIT_ENVIRONMENT;
}
