/* base/options: one const table of options feeds YAML configuration, environment, command line,
 * --help, the man page, completion, "show config" and what a resume goes by. Main thread, before
 * threads start. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_BOOL,     /* bool; --name, --no-name, name: true */
    OPTION_INT,      /* int64_t, with bounds */
    OPTION_REAL,     /* double, with bounds */
    OPTION_TEXT,     /* const char *, in the arena */
    OPTION_CHOICE,   /* const char *, one of `choices` ("a|b|c") */
    OPTION_ENUM,     /* an enum, whose values are the choices in their order */
    OPTION_DURATION, /* int64_t milliseconds; "90s", "10m", "1.5h", "250ms" */
    OPTION_SIZE,     /* int64_t bytes; "64M", "2G", "4096" */
    OPTION_DOLLARS   /* int64_t millionths, with bounds in dollars; "2.5" */
};

enum option_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_COMMAND_LINE };

struct option {
    const char *name; /* "branching": --branching on the command line, branching: in YAML */
    char letter;      /* 'n', or 0 */
    enum option_type type;
    size_t offset;            /* of the field in the caller's struct */
    const char *record;       /* its key where what was told is kept (options_encode), or NULL */
    const char *default_text; /* parsed like the user's; NULL: zero or NULL */
    double least, most;       /* inclusive; both 0: none; most < least: no upper one */
    const char *choices;      /* OPTION_CHOICE, OPTION_ENUM */
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

/* What was told, as one JSON object: every option with a record key but texts that are not
 * set. options_decode() stores what such an object has, but not over what the command line said.
 * Texts in the arena. ERR_CORRUPT where it is not such an object. */
const char *options_encode(const struct option_table *table, const void *target,
                           struct arena *arena);
int options_decode(const struct option_table *table, void *target,
                   const enum option_origin *origins, struct arena *arena,
                   const struct value *value, struct err *err) MUST_USE;

/* The field of `target`: as JSON, durations in ms, sizes in bytes, dollars in millionths; as the
 * configuration has it, false where it is not set; and as "name: value", blanks behind it. */
void option_put_json(const struct option *option, const void *target, struct json *json);
bool option_write_yaml(const struct option *option, const void *target, struct buf *out);
void option_show(const struct option *option, const void *target, struct buf *out);

/* The same table as roff (.TP entries) and as bash completion's words, separated by blanks. */
void options_man(const struct option_table *table, uint32_t mask, struct buf *out);
void options_completion(const struct option_table *table, uint32_t mask, struct buf *out);

/* Durations and sizes, for those who read them elsewhere. */
int options_parse_duration(const char *text, int64_t *ms, struct err *err) MUST_USE;
int options_parse_size(const char *text, int64_t *bytes, struct err *err) MUST_USE;

/* The nearest of the NULL-terminated names by edit distance, or NULL where none is near. */
const char *options_nearest(const char *word, const char *const *names);
