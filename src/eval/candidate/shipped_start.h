/* eval/candidate/shipped_start: a start of a shipped problem in the names of a definition that
 * computes the same. Any thread; blocks. */
#pragma once

#include "base/buf.h"
#include "eval/problem/problem.h"

/* Reads a path of problem_starts(). ERR_USAGE where a shipped one cannot be said in the
 * definition's names. */
int shipped_read_start(const struct problem *problem, const char *path, struct buf *text,
                       struct err *err) MUST_USE;
