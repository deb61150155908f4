/* cli/eval/sweep: `eval --sweep N`: points of a candidate's tune space, one evaluation after the
 * other in one worker session, a JSON line for each on stdout. Loop thread. */
#pragma once

#include "base/err.h"
#include "cli/options/settings.h"

#include <stddef.h>

struct lane;
struct task;
struct sweep; /* opaque */

/* Reads the candidate; the rest is borrowed until sweep_free(). ERR_PARSE, ERR_USAGE. */
int sweep_new(const struct settings *settings, const char *problem, const char *name,
              const char *source, size_t length, struct sweep **sweep, struct err *err) MUST_USE;

/* Once the lane has answered LANE_OPEN with `facts` (a JSON object of numbers): chooses points.
 * ERR_USAGE where `where` leaves none. */
struct value;
int sweep_choose(struct sweep *sweep, const struct value *facts, struct err *err) MUST_USE;

/* In each step of `owner`: prints what has ended, in order of ending, and asks for more. False when
 * there is no more to come; *err then says what went wrong, if something did. */
bool sweep_step(struct sweep *sweep, struct lane *lane, struct task *owner, struct err *err);

size_t sweep_kernels(const struct sweep *sweep);
void sweep_free(struct sweep *sweep); /* after the lane is closed; NULL is fine */
