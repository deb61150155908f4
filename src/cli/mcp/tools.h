/* cli/mcp/tools: what an agent may call: each tool is a command of ours with some of its options.
 * The table makes the schemas, and reads the arguments by them. Main thread. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum agent_tool_ways {
    TOOL_READS = 1,    /* changes nothing */
    TOOL_MEASURES = 2, /* one at a time */
    TOOL_DETACHES = 4, /* may go on without the client: a run */
    TOOL_ATTEMPT = 8,  /* for an agent that works on a run's candidate, and nobody else */
    TOOL_BOTH = 16,    /* for such an agent, too */
    TOOL_APART = 32,   /* may be answered before it has ended */
    TOOL_WAITS = 64    /* for the answer of such a call: no child */
};

struct agent_tool {
    const char *name, *description;
    const char *command[3];  /* words, as {"problem", "check"}; none: the server answers itself */
    const char *positionals; /* names, a blank between; "?" behind one that may lack */
    const char *options;     /* of the command, by their names */
    const char *extra;       /* a word of ours for the command, or NULL */
    unsigned ways;
    uint32_t bit; /* the command's, in the table of options */
    uint64_t limit_s;
};

extern const struct agent_tool agent_tools[];
extern const size_t agent_tool_count;

bool agent_tool_is_for(const struct agent_tool *tool, bool attempt);
const struct agent_tool *agent_tool_find(const char *name, bool attempt); /* NULL: there is none */
void agent_tool_describe(const struct agent_tool *tool, struct json *json);

/* What the client's agent may touch: its own folder. */
struct agent_tool_place {
    const char *root;   /* absolute; NULL: nothing, the server was started in "/" */
    bool attempt;       /* it works on a run's candidate */
    const char *folder; /* where a source that came as text is put; made when one does */
};

/* A problem as a person names it: the word for a command, or ERR_USAGE where a path leaves the
 * client's folder. */
int agent_tool_problem(const struct agent_tool_place *place, const char *text, struct arena *arena,
                       const char **word, struct err *err) MUST_USE;
/* The child's words for these arguments, NULL-terminated. ERR_USAGE says which argument is wrong,
 * and what is expected. `detach`: it is to go on by itself. */
int agent_tool_words(const struct agent_tool *tool, const struct agent_tool_place *place,
                     const struct value *map, struct arena *arena, const char *const **words,
                     bool *detach, struct err *err) MUST_USE;
