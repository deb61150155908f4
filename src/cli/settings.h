/* cli/settings: every option of every command, in one const table; the table feeds the YAML
 * configuration, the environment, the command line, --help, the man page, completion and
 * `twagent config`. Main thread. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "base/options.h"

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
                   COMMAND_ALL = 131071
};

struct settings {
    /* where and how */
    const char *store, *config, *python, *cores, *devices, *backend;
    bool json, quiet, verbose;
    /* run: what is searched, and how */
    const char *problem, *baseline, *strategy, *launcher;
    int64_t branching, rounds, implementations, repairs, beam, seed;
    int64_t islands, migration, lanes, tuning, requests, passage_tokens;
    double select;
    bool dry_run, final, lessons, unfit, unconfined;
    const char *report; /* folder for the report; NULL: the store's reports/RUN */
    /* run: who is asked */
    const char *provider, *model, *idea_model, *code_model, *base_url;
    const char *models, *env_file, *ca_file;
    double temperature;
    int64_t max_tokens;
    /* run: when it ends or waits */
    int64_t budget_time_ms, budget_evaluations, budget_tokens;
    double budget_usd, target, floor_share;
    int64_t patience, mailbox_wait_ms, disk_quota, disk_floor;
    bool watch; /* status */
    /* eval */
    const char *tune, *effort; /* "BM=64,BN=128"; "full" | "search" | "final" */
    int64_t call_timeout_ms, time_budget_ms, sweep, first_byte_ms, silence_ms, answer_ms;
    bool profile, sanitize, cachegrind;
    const char *output, *to;                              /* best, show, lessons; emit */
    bool source, adversarial, measure;                    /* show, best; doctor */
    const char *tag, *exclude, *embedding_model, *family; /* docs; lessons */
    bool builtin, wins;                                   /* wins: of lessons */
    int64_t limit, tokens, jobs, elements, each_ms;       /* the last three: problem */
    int64_t last;
    /* how each was set, in the table's order; filled by settings_load() */
    const enum option_origin *origins;
    const char *file; /* the configuration that was read, or NULL */
};

extern const struct option_table settings_table;

/* True where the command line says it: settings_given(s, offsetof(struct settings, rounds)). */
bool settings_given(const struct settings *settings, size_t offset);

/* Defaults, then the configuration file (--config, else $XDG_CONFIG_HOME/twagent/config.yaml, else
 * ~/.config/twagent/config.yaml, where there is one), then environment, then command line. */
int settings_load(struct arena *arena, uint32_t command, int argc, char **argv,
                  struct settings *settings, const char **positionals, size_t most, size_t *count,
                  struct err *err) MUST_USE;

#endif
