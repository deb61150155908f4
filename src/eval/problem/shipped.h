/* eval/problem/shipped: a PyTorch file that computes what a shipped problem computes begins with
 * its starts, in the file's own names. libexec/torch_shipped.py recognises it. Any thread; blocks.
 */
#pragma once

#include "base/json.h"
#include "eval/problem/problem.h"

/* The shipped problems as that script takes them: one array. */
void shipped_put(struct json *json);
/* That of the shipped problem which this one computes; mem_free() it. NULL: none. */
char *shipped_folder(const struct problem *problem);

/* The folder that holds the problem's starts where it has none of its own; NULL: there is none. */
const char *shipped_starts_folder(const struct problem *problem, const char *backend);
