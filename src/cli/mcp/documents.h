/* cli/mcp/documents: what an agent may read, and what a person may ask it to do: files that ship,
 * by name. Main thread. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "cli/mcp/tools.h"

void documents_list(struct json *json);
void documents_templates(struct json *json);
/* The text of a document in the arena; or the words of a child that prints it, NULL-terminated.
 * ERR_NOT_FOUND. */
int documents_read(const struct agent_tool_place *place, struct arena *arena, const char *uri,
                   const char **text, const char *const **words, struct err *err) MUST_USE;

/* What a coding agent should know of us; also `twagent skill`. NULL: not installed. */
const char *documents_guide(struct arena *arena);

void prompts_list(struct json *json);
/* The words of a child that prints what to tell a model for making `problem` faster.
 * ERR_NOT_FOUND, ERR_USAGE. */
int prompts_words(const struct agent_tool_place *place, struct arena *arena, const char *name,
                  const char *problem, const char *wish, const char *const **words,
                  struct err *err) MUST_USE;
