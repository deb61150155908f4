/* agents/llm/keys: a provider's key, by the name of its variable: from the environment, else from a
 * .env file of KEY=value lines. Blocks (start of a run). Any thread.
 *
 * Lines may begin with "export ", values may stand in quotes ('...' as it is; "..." with \n, \t,
 * \", \\, \$), a " #" outside of quotes begins a comment, CRLF is fine, the last assignment wins.
 * Lines about other variables are nobody's business here, whatever they look like. The value
 * never enters this process's environment, where children would find it, nor any message. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* *key in the arena, or NULL where it is in neither place; an empty one counts as absent. `file`
 * NULL: ./.env where there is one; one that is called .env need not be there either. ERR_USAGE
 * where another one cannot be read, and with file and line where the variable's own line makes no
 * sense or its value cannot stand in a header. A file that others may read is one warning in the
 * log. */
int key_find(struct arena *arena, const char *variable, const char *file, const char **key,
             struct err *err) MUST_USE;
