#include "cli/settings.h"

#include "base/file.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct settings, field)

enum {
    MEASURING = COMMAND_RUN | COMMAND_EVAL | COMMAND_PROBLEM | COMMAND_DOCTOR,
    STORED = COMMAND_RUN | COMMAND_EVAL | COMMAND_LIST | COMMAND_SHOW | COMMAND_BEST |
             COMMAND_DOCTOR | COMMAND_BACKUP | COMMAND_PROBLEM,
};

/* clang-format off */
static const struct option options[] = {
    {"problem", 'p', OPTION_TEXT, AT(problem), NULL, 0, 0, NULL, NULL, "NAME",
     "problem to work on, as the argument PROBLEM: a shipped name, a folder or a spec.yaml", COMMAND_RUN},
    {"branching", 'b', OPTION_INT, AT(branching), "8", 1, 4096, NULL, NULL, "N",
     "ideas asked for in each round", COMMAND_RUN},
    {"select", 's', OPTION_REAL, AT(select), "0.25", 0.0001, 1, NULL, NULL, "F",
     "share of the kept kernels that become parents of the next round", COMMAND_RUN},
    {"rounds", 'r', OPTION_INT, AT(rounds), "8", 1, 100000, NULL, NULL, "N",
     "rounds of the search", COMMAND_RUN},
    {"implementations", 'i', OPTION_INT, AT(implementations), "2", 1, 64, NULL, NULL, "N",
     "independent implementations of each idea", COMMAND_RUN},
    {"beam", 0, OPTION_INT, AT(beam), "0", 0, 4096, NULL, NULL, "N",
     "number of parents kept each round, in place of --select", COMMAND_RUN},
    {"repairs", 0, OPTION_INT, AT(repairs), "2", 0, 64, NULL, NULL, "N",
     "times a candidate that fails or is wrong goes back with its diagnostics", COMMAND_RUN},
    {"dry-run", 0, OPTION_BOOL, AT(dry_run), "false", 0, 0, NULL, NULL, NULL,
     "evaluate a single candidate, then stop", COMMAND_RUN},
    {"final", 0, OPTION_BOOL, AT(final), "true", 0, 0, NULL, NULL, NULL,
     "measure the champion again, with fresh processes, fresh seeds and sanitizers", COMMAND_RUN},
    {"provider", 0, OPTION_CHOICE, AT(provider), "builtin", 0, 0, "builtin|openai", "TWAGENT_PROVIDER", "NAME",
     "where ideas and code come from", COMMAND_RUN},
    {"model", 'm', OPTION_TEXT, AT(model), NULL, 0, 0, NULL, "TWAGENT_MODEL", "NAME",
     "the provider's model", COMMAND_RUN},
    {"base-url", 0, OPTION_TEXT, AT(base_url), NULL, 0, 0, NULL, "OPENAI_BASE_URL", "URL",
     "the provider's address, for any server that speaks its format", COMMAND_RUN},
    {"temperature", 0, OPTION_REAL, AT(temperature), "-1", -1, 2, NULL, NULL, "T",
     "sampling temperature; -1 leaves it to the provider", COMMAND_RUN},
    {"max-tokens", 0, OPTION_INT, AT(max_tokens), "0", 0, 10000000, NULL, NULL, "N",
     "most tokens of one completion; 0 leaves it to the provider", COMMAND_RUN},
    {"seed", 0, OPTION_INT, AT(seed), "0", 0, 0, NULL, NULL, "N",
     "seed of the search's own choices; 0 draws one (inputs are always drawn afresh)", COMMAND_RUN},
    {"budget-time", 't', OPTION_DURATION, AT(budget_time_ms), "0", 0, 0, NULL, NULL, "TIME",
     "wall time for the whole run, final measurement included (90s, 10m, 8h); 0: none", COMMAND_RUN},
    {"budget-evaluations", 0, OPTION_INT, AT(budget_evaluations), "0", 0, 0, NULL, NULL, "N",
     "most evaluations; 0: none", COMMAND_RUN},
    {"report", 0, OPTION_TEXT, AT(report), NULL, 0, 0, NULL, NULL, "DIR",
     "folder for the report and the best kernel (default: reports/RUN in the store's folder)", COMMAND_RUN},
    {"tune", 0, OPTION_TEXT, AT(tune), NULL, 0, 0, NULL, NULL, "A=1,B=2",
     "numbers for the candidate's tune parameters (default: each one's first)", COMMAND_EVAL},
    {"effort", 0, OPTION_CHOICE, AT(effort), "full", 0, 0, "search|full|final", NULL, "LEVEL",
     "how much is measured: as in a search, in full, or as a champion", COMMAND_EVAL},
    {"profile", 0, OPTION_BOOL, AT(profile), "true", 0, 0, NULL, NULL, NULL,
     "profile a candidate that is right", COMMAND_EVAL},
    {"sanitize", 0, OPTION_BOOL, AT(sanitize), "false", 0, 0, NULL, NULL, NULL,
     "also run a build with address and undefined-behaviour sanitizers (always with --effort final)", COMMAND_EVAL},
    {"baseline", 0, OPTION_TEXT, AT(baseline), NULL, 0, 0, NULL, NULL, "NAME",
     "what speed-ups are against: reference, or one of the problem's baselines (default: the problem's choice)", COMMAND_RUN | COMMAND_EVAL},
    {"backend", 0, OPTION_CHOICE, AT(backend), "cpu", 0, 0, "cpu", NULL, "NAME",
     "where candidates run", MEASURING},
    {"cores", 0, OPTION_TEXT, AT(cores), NULL, 0, 0, NULL, NULL, "LIST",
     "CPUs of the lane, as in 0-3,8 (default: all that are allowed)", MEASURING},
    {"call-timeout", 0, OPTION_DURATION, AT(call_timeout_ms), "10s", 1, 0, NULL, NULL, "TIME",
     "longest single call of a candidate", MEASURING},
    {"time-budget", 0, OPTION_DURATION, AT(time_budget_ms), "400ms", 1, 0, NULL, NULL, "TIME",
     "time spent on timed samples of one evaluation", MEASURING},
    {"python", 0, OPTION_TEXT, AT(python), NULL, 0, 0, NULL, "TWAGENT_PYTHON", "PATH",
     "Python with numpy, for references (default: found in $VIRTUAL_ENV, PATH, /usr/bin)", MEASURING},
    {"output", 'o', OPTION_TEXT, AT(output), NULL, 0, 0, NULL, NULL, "FILE",
     "write the kernel's source there", COMMAND_BEST | COMMAND_SHOW},
    {"source", 0, OPTION_BOOL, AT(source), "false", 0, 0, NULL, NULL, NULL,
     "print the source only", COMMAND_BEST | COMMAND_SHOW},
    {"adversarial", 0, OPTION_BOOL, AT(adversarial), "false", 0, 0, NULL, NULL, NULL,
     "run the shipped attacks and honest controls on this machine, and say which verdicts held", COMMAND_DOCTOR},
    {"measure", 0, OPTION_BOOL, AT(measure), "true", 0, 0, NULL, NULL, NULL,
     "measure bandwidth and FMA rate", COMMAND_DOCTOR},
    {"store", 0, OPTION_TEXT, AT(store), NULL, 0, 0, NULL, "TWAGENT_STORE", "DIR",
     "where runs are kept (default: $XDG_STATE_HOME/twagent or ~/.local/state/twagent)", STORED},
    {"config", 0, OPTION_TEXT, AT(config), NULL, 0, 0, NULL, "TWAGENT_CONFIG", "FILE",
     "configuration in YAML: any option by its name (default: ~/.config/twagent/config.yaml)", COMMAND_ALL},
    {"json", 0, OPTION_BOOL, AT(json), "false", 0, 0, NULL, NULL, NULL,
     "print JSON for programs in place of text for people", COMMAND_ALL},
    {"quiet", 'q', OPTION_BOOL, AT(quiet), "false", 0, 0, NULL, NULL, NULL,
     "no progress, only the result", COMMAND_RUN | COMMAND_EVAL},
    {"verbose", 'v', OPTION_BOOL, AT(verbose), "false", 0, 0, NULL, NULL, NULL,
     "every event as a line", COMMAND_RUN | COMMAND_EVAL},
};
/* clang-format on */

const struct option_table settings_table = {options, sizeof options / sizeof options[0]};

/* --config is needed before the file is read: it is looked for ahead of the others. */
static const char *config_path(struct arena *arena, int argc, char **argv, bool *required)
{
    *required = true;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
            return argv[i + 1];
        if (strncmp(argv[i], "--config=", 9) == 0)
            return argv[i] + 9;
    }
    const char *path = getenv("TWAGENT_CONFIG");
    if (path && *path)
        return path;
    *required = false;
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (folder && *folder == '/')
        return arena_printf(arena, "%s/twagent/config.yaml", folder);
    return home ? arena_printf(arena, "%s/.config/twagent/config.yaml", home) : NULL;
}

int settings_load(struct arena *arena, uint32_t command, int argc, char **argv,
                  struct settings *settings, const char **positionals, size_t most, size_t *count,
                  struct err *err)
{
    memset(settings, 0, sizeof *settings);
    enum option_origin *origins = arena_array(arena, settings_table.count, sizeof *origins);
    settings->origins = origins;
    if (options_defaults(&settings_table, settings, origins, arena, err))
        return -1;
    bool required = false;
    const char *path = config_path(arena, argc, argv, &required);
    if (path && (required || file_exists(path)) &&
        options_file(&settings_table, settings, origins, arena, path, err))
        return -1;
    if (options_environment(&settings_table, settings, origins, arena, err))
        return -1;
    return options_command_line(&settings_table, settings, origins, arena, command, argc, argv,
                                positionals, most, count, err);
}
