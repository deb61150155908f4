#include "cli/mcp/children.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/find/control.h"
#include "cli/mcp/tools.h"
#include "cli/options/command.h"
#include "process/spawn.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- both ---- */

enum { OUTPUT_MOST = 15 << 20, LIMIT_MS = 120000 };

static int run_both(const char *const *words, struct buf *out, struct buf *errors)
{
    extern char **environ;
    MEM_LOCAL char *folder = getcwd(NULL, 0);
    struct err ignored;
    const struct spawn_spec spec = {
        .argv = words, .env = (const char *const *)environ, .folder = folder};
    return spawn_run(&spec, LIMIT_MS, 0, out, errors, &ignored);
}

int both_main(int argc, char **argv)
{
    BUF_LOCAL(text, OUTPUT_MOST);
    BUF_LOCAL(json, OUTPUT_MOST);
    BUF_LOCAL(errors, 1 << 16);
    const char **words = (const char **)mem_array((size_t)argc + 2, sizeof *words);
    size_t count = 1;
    words[0] = file_program_path();
    for (int i = 0; i < argc; i++)
        if (i != 1)
            words[count++] = argv[i];
    int failed = run_both(words, &text, &errors);
    for (int i = 0; i < argc; i++)
        words[i + 1] = argv[i];
    failed = failed || run_both(words, &json, &errors);
    mem_free(words);
    fputs(buf_text(&errors), stderr);
    if (failed)
        return EXIT_NONE;
    fwrite(buf_text(&text), 1, text.length, stdout);
    putchar('\0');
    fwrite(buf_text(&json), 1, json.length, stdout);
    return 0;
}

/* ---- detached ----
 *
 * The run's own log and report have what it says; what it prints is kept in memory until it runs,
 * for the case that it does not come so far. */

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

static void say_begun(const struct run_record *run)
{
    JSON_LOCAL(json, text, 1 << 12);
    json_object(&json);
    json_put_text(&json, "run", run->id);
    json_put_text(&json, "problem", run->problem);
    json_put_text(&json, "state", "running; status says where it stands, stop ends it");
    json_object_end(&json);
    printf("%s\n", buf_text(&text));
}

int detached_main(int argc, char **argv)
{
    ARENA_LOCAL(arena);
    struct settings settings;
    struct err err = {0};
    const char *positionals[4];
    size_t count;
    uint32_t bit = 0;
    for (size_t i = 0; argc > 0 && i < agent_tool_count; i++)
        if (agent_tools[i].ways & TOOL_DETACHES && strcmp(agent_tools[i].command[0], argv[0]) == 0)
            bit = agent_tools[i].bit;
    if (settings_load(arena, bit, argc - 1, argv + 1, &settings, positionals, 4, &count, &err))
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
            say_begun(&run);
            return 0;
        }
        poll(NULL, 0, STEP_MS);
    }
    fprintf(stderr, "twagent: the run did not begin within a minute\n");
    return EXIT_ENVIRONMENT;
}
