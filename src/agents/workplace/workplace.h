/* agents/workplace: the folder that a coding agent works in, for one candidate. The run writes the
 * task's files into it, and takes requests from there: a source as a file "NAME.evaluate" or
 * "NAME.submit" in .twagent/requests, answered by "NAME.answer" in .twagent/answers. Files alone,
 * since these pass every sandbox. What lies there is the agent's: no link is followed, nothing but
 * a plain file is read, and no more than it may hold. Blocks. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Words for `twagent eval`, a line each: the problem, then options. */
#define WORKPLACE_EVAL ".twagent/eval"

enum { WORKPLACE_SOURCE_MOST = 1 << 20, WORKPLACE_REQUESTS_MOST = 8, WORKPLACE_NAME = 48 };

struct workplace; /* opaque. One thread at a time */

/* An empty one: what was there before is removed. NULL with the error. */
struct workplace *workplace_make(const char *folder, struct err *err);
/* `name` may have one folder in it: "guides/numerics.md". */
int workplace_write(const char *folder, const char *name, const char *text,
                    struct err *err) MUST_USE;
void workplace_free(struct workplace *place); /* the folder stays; NULL is fine */

struct workplace_request {
    char name[WORKPLACE_NAME];
    bool submits;
    char *source; /* mem_free() it; NULL: more than it may hold, or no text */
    size_t length;
};
/* Takes what was asked since, the oldest first; returns how many. */
size_t workplace_take(struct workplace *place,
                      struct workplace_request requests[WORKPLACE_REQUESTS_MOST]);
void workplace_answer(struct workplace *place, const char *name, const char *text, size_t length);

/* The agent's side: waits until it is answered. ERR_NOT_FOUND where the folder is gone. */
int workplace_ask(const char *folder, bool submits, const char *source, size_t length,
                  struct buf *answer, struct err *err) MUST_USE;
