/* cli/mcp/results: what a command printed, as an agent wants it: short, with what was left out kept
 * for whoever asks. Main thread. */
#pragma once

#include "base/json.h"
#include "mcp/mcp.h"

struct results; /* opaque: the last whole results */

struct results *results_new(void);
void results_free(struct results *results);

/* Members of a tool's result. */
void results_answer(struct results *results, const struct mcp_call *call, struct json *json);
void results_say(const char *facts, struct json *json);      /* an object as JSON */
void results_refuse(const char *message, struct json *json); /* an error that the agent can mend */

/* All of a part of one that was shortened. */
int results_more(struct results *results, const char *id, const char *part, struct json *json,
                 struct err *err) MUST_USE;
