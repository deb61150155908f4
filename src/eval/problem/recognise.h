/* eval/problem/recognise: which shipped problem a numpy function or one in C computes. Inside
 * src/eval/problem. Blocks: the first time for about a second; it is remembered in
 * $XDG_CACHE_HOME/twagent or ~/.cache/twagent. */
#pragma once

#include "eval/problem/problem.h"

struct value;

/* What libexec/shipped_match.py finds, in the problem's arena; NULL: none, or it cannot be asked.
 */
const struct value *recognise(const struct problem *problem);
