/* agents/search/candidate/task_files: what a coding agent finds in its folder beside its task.
 * Inside src/agents/search. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct search;
struct attempt;

/* The parent's source (or NULL), the definition, the guides for its backend, and the files by which
 * it starts our MCP server, whose calls may take `limit_ms`. Blocks. */
int task_files_write(const struct search *search, const struct attempt *parent, const char *folder,
                     uint64_t limit_ms, struct err *err) MUST_USE;
