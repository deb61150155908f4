/* cli/options/command: the commands of the program, one file each, one line each in the table of
 * main.c. Main thread. Each command returns the process' exit code: 0 a verified win (eval: a
 * kernel), 1 none, 2 usage, 3 environment, 4 stopped by a budget or a person. */
#pragma once

#include "base/err.h"
#include "base/options.h"
#include "cli/options/settings.h"

struct command {
    const char *name;
    uint32_t bit;          /* in struct option's `commands` */
    const char *arguments; /* "PROBLEM FILE" */
    const char *summary;   /* one line */
    const char *details;   /* paragraphs for --help and the man page */
    size_t least, most;    /* positionals */
    int (*run)(const struct settings *settings, const char *const *arguments, size_t count);
};

extern const struct command commands[];
extern const size_t command_count;

enum { EXIT_WIN = 0, EXIT_NONE = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3, EXIT_STOPPED = 4 };

/* Prints "twagent: message" and returns the exit code for the error. */
int command_fail(const struct err *err);

/* A path that is there as an absolute one, since a worker stands elsewhere; else the word itself,
 * for a shipped problem's name. In the arena. */
const char *command_path(struct arena *arena, const char *word);

int command_run(const struct settings *settings, const char *const *arguments, size_t count);
int command_resume(const struct settings *settings, const char *const *arguments, size_t count);
int command_pause(const struct settings *settings, const char *const *arguments, size_t count);
int command_stop(const struct settings *settings, const char *const *arguments, size_t count);
int command_status(const struct settings *settings, const char *const *arguments, size_t count);
int command_serve(const struct settings *settings, const char *const *arguments, size_t count);
int command_mcp(const struct settings *settings, const char *const *arguments, size_t count);
int command_skill(const struct settings *settings, const char *const *arguments, size_t count);
int command_eval(const struct settings *settings, const char *const *arguments, size_t count);
int command_profile(const struct settings *settings, const char *const *arguments, size_t count);
int command_problem(const struct settings *settings, const char *const *arguments, size_t count);
int command_list(const struct settings *settings, const char *const *arguments, size_t count);
int command_show(const struct settings *settings, const char *const *arguments, size_t count);
int command_emit(const struct settings *settings, const char *const *arguments, size_t count);
int command_best(const struct settings *settings, const char *const *arguments, size_t count);
int command_doctor(const struct settings *settings, const char *const *arguments, size_t count);
int command_config(const struct settings *settings, const char *const *arguments, size_t count);
int command_docs(const struct settings *settings, const char *const *arguments, size_t count);
int command_tune(const struct settings *settings, const char *const *arguments, size_t count);
int command_lessons(const struct settings *settings, const char *const *arguments, size_t count);
int command_history(const struct settings *settings, const char *const *arguments, size_t count);
int command_stats(const struct settings *settings, const char *const *arguments, size_t count);
int command_diff(const struct settings *settings, const char *const *arguments, size_t count);
int command_import(const struct settings *settings, const char *const *arguments, size_t count);
int command_export(const struct settings *settings, const char *const *arguments, size_t count);
int command_report(const struct settings *settings, const char *const *arguments, size_t count);
int command_gc(const struct settings *settings, const char *const *arguments, size_t count);
int command_verify(const struct settings *settings, const char *const *arguments, size_t count);
int command_rerun(const struct settings *settings, const char *const *arguments, size_t count);
int command_cache(const struct settings *settings, const char *const *arguments, size_t count);
int command_backup(const struct settings *settings, const char *const *arguments, size_t count);
