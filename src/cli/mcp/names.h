/* cli/mcp/names: the arguments that tools take, by their names in the table of tools. Inside
 * src/cli/mcp. */
#pragma once

#include "base/options.h"
#include "cli/mcp/tools.h"

enum { NAME_MOST = 64 };

enum argument_kind {
    A_PROBLEM, /* a shipped name, or a path in the folder */
    A_KERNEL,  /* `source`, or `file` */
    A_KERNELS, /* the same, or several: `sources`, `files` */
    A_TUNED,   /* the same, or a candidate's `id`; none: the starts */
    A_ID,
    A_FOLDER, /* a path in the folder, to be made */
    A_WORDS,
    A_NUMBER, /* these two are the server's: no word of a command */
    A_FLAG
};

struct positional { /* an argument that is no option */
    const char *name;
    enum argument_kind kind;
    const char *help;
};
const struct positional *positional_find(const char *name, size_t length);
bool positional_is_kernel(enum argument_kind kind);

/* The next name in a list; false at its end. */
bool next_name(const char **at, const char **name, size_t *length, bool *optional);
const struct option *option_of(const struct agent_tool *tool, const char *name, size_t length);
/* "budget-time" -> "budget_time" */
const char *argument_name(const struct option *option, char name[NAME_MOST]);
