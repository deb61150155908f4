/* What a coding agent that works on a run's candidate asks for (agents/workplace). Whole
 * evaluations are the run's: they wait for its lanes, are kept and count. What needs no verdict, or
 * compares two sources of the agent's own, is `twagent eval` with the run's problem, whose words
 * the run has put into the folder: it is told to the agent alone. */
#include "agents/workplace/workplace.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/find/control.h"
#include "cli/mcp/children.h"
#include "cli/options/command.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MOST = 8 << 20, WORDS_MOST = 1 << 16 };

/* Its folder: where it says so, else the one that it stands in. */
static const char *folder_of_attempt(void)
{
    const char *said = getenv("TWAGENT_ATTEMPT");
    return said && *said ? said : ".";
}

/* "--until=check", or, with its value to come, "--until". */
static bool is_apart(const char *option)
{
    return strncmp(option, "--until", 7) == 0 || strncmp(option, "--against", 9) == 0;
}

/* An id that it compares with is of the run's own store, two folders above. */
static int try_apart(char **options, size_t option_count, char **files, size_t count)
{
    ARENA_LOCAL(arena);
    BUF_LOCAL(text, WORDS_MOST);
    struct err err = {0};
    const char *folder = folder_of_attempt();
    if (file_read(arena_printf(arena, "%s/%s", folder, WORKPLACE_EVAL), &text, &err) != 0)
        return command_fail(&err);
    MEM_LOCAL char *store = realpath(arena_printf(arena, "%s/../..", folder), NULL);
    if (store)
        (void)setenv("TWAGENT_STORE", store, 1);
    MEM_LOCAL const char **words =
        (const char **)mem_array(option_count + count + text.length + 4, sizeof *words);
    char *at = arena_strdup(arena, buf_text(&text));
    const char *problem = strsep(&at, "\n");
    size_t n = 0;
    words[n++] = file_program_path();
    words[n++] = "eval";
    for (size_t i = 0; i < option_count; i++)
        if (strcmp(options[i], "--") != 0)
            words[n++] = options[i];
    for (const char *word; (word = strsep(&at, "\n")) != NULL;)
        if (*word)
            words[n++] = word;
    words[n++] = "--";
    words[n++] = problem;
    for (size_t i = 0; i < count; i++)
        words[n++] = files[i];
    execv(words[0], (char *const *)words);
    (void)err_set_errno(&err, ERR_ENVIRONMENT, errno, "%s", words[0]);
    return command_fail(&err);
}

static int ask_run(const char *file, bool submits, struct err *err)
{
    BUF_LOCAL(source, WORKPLACE_SOURCE_MOST + 1);
    BUF_LOCAL(answer, ANSWER_MOST);
    if (file_read(file, &source, err) != 0 ||
        workplace_ask(folder_of_attempt(), submits, buf_text(&source), source.length, &answer,
                      err) != 0)
        return -1;
    fwrite(buf_text(&answer), 1, answer.length, stdout);
    return 0;
}

/* Several: {"1 a.c": {...}, "2 b.c": {...}}, as `twagent eval` has them. */
static int ask_all(char **files, size_t count, bool submits)
{
    struct err err = {0};
    for (size_t i = 0; i < count; i++) {
        JSON_LOCAL(json, name, 1 << 13);
        const char *slash = strrchr(files[i], '/');
        ARENA_LOCAL(arena);
        json_text(&json, arena_printf(arena, "%zu %s", i + 1, slash ? slash + 1 : files[i]));
        if (count > 1)
            printf("%s%s:", i > 0 ? "," : "{", buf_text(&name));
        if (ask_run(files[i], submits, &err) != 0)
            return command_fail(&err);
    }
    puts(count > 1 ? "}" : "");
    return fflush(stdout) == 0 ? 0 : EXIT_ENVIRONMENT;
}

int attempt_main(int argc, char **argv)
{
    size_t options = 0, at = 0;
    bool apart = false;
    char **given = (char **)mem_array((size_t)argc + 1, sizeof *given);
    for (int i = 0; i < argc; i++) { /* wherever they stand; the server asks for --json, too */
        bool option = argv[i][0] == '-';
        apart = apart || is_apart(argv[i]);
        if (!option)
            argv[at++] = argv[i];
        else
            given[options++] = argv[i];
        if (option && is_apart(argv[i]) && !strchr(argv[i], '=') && i + 1 < argc)
            given[options++] = argv[++i];
    }
    int code = EXIT_USAGE;
    bool submits = at == 2 && strcmp(argv[0], "submit") == 0;
    if (at < 2 || (!submits && strcmp(argv[0], "evaluate") != 0) || (submits && apart))
        fprintf(stderr, "twagent: usage: twagent attempt evaluate [--until=compile|check] "
                        "[--against=FILE|ID] FILE..., or submit FILE\n");
    else
        code = apart ? try_apart(given, options, argv + 1, at - 1)
                     : ask_all(argv + 1, at - 1, submits);
    mem_free(given);
    return code;
}
