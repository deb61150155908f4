/* base/options: one const table of options feeds YAML configuration, environment, command line,
 * --help, the man page, completion and "show config". Main thread, before threads start. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_BOOL,     /* bool; --name, --no-name, name: true */
    OPTION_INT,      /* int64_t, with bounds */
    OPTION_REAL,     /* double, with bounds */
    OPTION_TEXT,     /* const char *, in the arena */
    OPTION_CHOICE,   /* const char *, one of `choices` ("a|b|c") */
    OPTION_DURATION, /* int64_t milliseconds; "90s", "10m", "1.5h", "250ms" */
    OPTION_SIZE      /* int64_t bytes; "64M", "2G", "4096" */
};

enum option_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_COMMAND_LINE };

struct option {
    const char *name; /* "branching": --branching on the command line, branching: in YAML */
    char letter;      /* 'n', or 0 */
    enum option_type type;
    size_t offset;            /* of the field in the caller's struct */
    const char *default_text; /* parsed like the user's; NULL: zero or NULL */
    double least, most;       /* inclusive; both 0: none; most < least: no upper one */
    const char *choices;      /* OPTION_CHOICE */
    const char *environment;  /* "TWAGENT_STORE", or NULL */
    const char *metavar;      /* "N", "DIR" */
    const char *help;         /* one sentence, no full stop */
    uint32_t commands;        /* bit set: which commands take it */
};

struct option_table {
    const struct option *options;
    size_t count;
};

/* The sequence is defaults, then file, then environment, then command line; each call overrides
 * what came before and notes the origin in origins[i]. `target` is the caller's struct. */
int options_defaults(const struct option_table *table, void *target, enum option_origin *origins,
                     struct arena *arena, struct err *err) MUST_USE;
int options_file(const struct option_table *table, void *target, enum option_origin *origins,
                 struct arena *arena, const char *path, struct err *err) MUST_USE;
int options_environment(const struct option_table *table, void *target, enum option_origin *origins,
                        struct arena *arena, struct err *err) MUST_USE;

/* Takes --name VALUE, --name=VALUE, -n VALUE for options whose `commands` meets `mask`; "--" ends
 * them. argv[0] is the first argument, not the program's or the command's name. What is no option
 * goes to positionals (at most `most`). An unknown option names the nearest one. --help is not
 * handled here. */
int options_command_line(const struct option_table *table, void *target,
                         enum option_origin *origins, struct arena *arena, uint32_t mask, int argc,
                         char **argv, const char **positionals, size_t most, size_t *count,
                         struct err *err) MUST_USE;

void options_help(const struct option_table *table, uint32_t mask, struct buf *out);
void options_show(const struct option_table *table, const void *target,
                  const enum option_origin *origins, uint32_t mask, struct buf *out);

/* The same table as roff (.TP entries) and as bash completion's words, separated by blanks. */
void options_man(const struct option_table *table, uint32_t mask, struct buf *out);
void options_completion(const struct option_table *table, uint32_t mask, struct buf *out);

/* Durations and sizes, for those who read them elsewhere. */
int options_parse_duration(const char *text, int64_t *ms, struct err *err) MUST_USE;
int options_parse_size(const char *text, int64_t *bytes, struct err *err) MUST_USE;

/* The nearest of the NULL-terminated names by edit distance, or NULL where none is near. */
const char *options_nearest(const char *word, const char *const *names);

#endif
