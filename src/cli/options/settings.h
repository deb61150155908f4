/* cli/options/settings: every option of every command, in one const table; the table feeds the YAML
 * configuration, the environment, the command line, --help, the man page, completion and
 * `twagent config`. Main thread. */
#pragma once

#include "agents/search/run/options.h"
#include "base/options.h"
#include "eval/lane/lane.h"

#include <stdbool.h>
#include <stdint.h>

enum command_bit { /* which commands take an option */
                   COMMAND_RUN = 1,
                   COMMAND_EVAL = 2,
                   COMMAND_PROBLEM = 4,
                   COMMAND_LIST = 8,
                   COMMAND_SHOW = 16,
                   COMMAND_BEST = 32,
                   COMMAND_DOCTOR = 64,
                   COMMAND_CONFIG = 128,
                   COMMAND_BACKUP = 256,
                   COMMAND_RESUME = 512,
                   COMMAND_PAUSE = 1024,
                   COMMAND_STOP = 2048,
                   COMMAND_STATUS = 4096,
                   COMMAND_DOCS = 8192,
                   COMMAND_LESSONS = 16384,
                   COMMAND_EMIT = 32768,
                   COMMAND_PROFILE = 65536,
                   COMMAND_TUNE = 1 << 17,
                   COMMAND_HISTORY = 1 << 18,
                   COMMAND_STATS = 1 << 19,
                   COMMAND_DIFF = 1 << 20,
                   COMMAND_EXPORT = 1 << 21,
                   COMMAND_SERVE = 1 << 22,
                   COMMAND_GC = 1 << 23,
                   COMMAND_VERIFY = 1 << 24,
                   COMMAND_RERUN = 1 << 25,
                   COMMAND_REPORT = 1 << 26,
                   COMMAND_CACHE = 1 << 27,
                   COMMAND_MCP = 1 << 28,
                   COMMAND_SKILL = 1 << 29,
                   COMMAND_IMPORT = 1 << 30,
                   COMMAND_ALL = 0x7fffffff
};

struct settings {
    struct search_options search; /* what other commands have in common with a search, too */
    const char *store, *config;
    bool json, quiet, verbose;
    const char *report; /* folder for the report; NULL: the store's reports/RUN */
    /* who is asked */
    const char *provider, *model, *idea_model, *code_model, *base_url, *models, *env_file;
    double temperature;
    int64_t max_tokens;
    bool force;          /* run, eval */
    bool watch, metrics; /* status */
    const char *listen;  /* serve */
    /* eval */
    const char *tune, *effort; /* "BM=64,BN=128"; "full" | "search" | "final" */
    const char *until;         /* "compile" | "check"; NULL: all of it */
    const char *against;       /* a file or a candidate's id; NULL: the baseline */
    int64_t sweep;
    int64_t max_evaluations; /* tune */
    bool profile, sanitize, cachegrind;
    const char *output, *to, *format;  /* best, show, lessons, export; emit; export */
    const char *bundle;                /* best, show */
    const char *status;                /* cache */
    bool html, unchecked_shapes;       /* report; emit */
    bool source, adversarial, measure; /* show, best; doctor */
    const char *tag, *exclude, *embedding_model, *family; /* docs; lessons */
    bool builtin, wins;                                   /* wins: of lessons */
    int64_t limit, tokens, jobs, elements, each_ms;       /* the last three: problem */
    int64_t last, older_than_ms, max_size;                /* list, lessons; gc */
    /* how each was set, in the table's order; filled by settings_load() */
    enum option_origin *origins;
    const char *file; /* the configuration that was read, or NULL */
};

extern const struct option_table settings_table;

/* True where the command line says it: settings_given(s, offsetof(struct settings, rounds)). */
bool settings_given(const struct settings *settings, size_t offset);
/* The worker that they ask for, without a baseline, demands and ceilings. `problem`: or NULL. */
struct lane_spec settings_lane(const struct settings *settings, const char *problem);

/* Defaults, then the configuration file (--config, else $XDG_CONFIG_HOME/twagent/config.yaml, else
 * ~/.config/twagent/config.yaml, where there is one), then environment, then command line. */
int settings_load(struct arena *arena, uint32_t command, int argc, char **argv,
                  struct settings *settings, const char **positionals, size_t most, size_t *count,
                  struct err *err) MUST_USE;
