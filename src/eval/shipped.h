/* eval/shipped: a PyTorch file that computes what a shipped problem computes begins with its
 * starts, in the file's own names. libexec/torch_shipped.py recognises it. Any thread; blocks. */
#ifndef EVAL_SHIPPED_H
#define EVAL_SHIPPED_H

#include "base/json.h"
#include "eval/problem.h"

/* The shipped problems as that script takes them: one array. */
void shipped_put(struct json *json);
/* The folder that holds the problem's starts where it has none of its own; NULL: there is none. */
const char *shipped_starts_folder(const struct problem *problem, const char *backend);

/* Reads a path of problem_starts(). ERR_USAGE where a shipped one cannot be said in the file's
 * names. */
int shipped_read_start(const struct problem *problem, const char *path, struct buf *text,
                       struct err *err) MUST_USE;

#endif
