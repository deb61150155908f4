/* eval/candidate/definition: a definition in plain C as a candidate, which is right as it stands.
 * Any thread; blocks. */
#pragma once

#include "base/buf.h"
#include "eval/problem/problem.h"
#include "eval/problem/target.h"

/* Candidates in this language are called as a definition in C is, and this one is in C. */
bool definition_is_candidate(const struct problem *problem, const struct language *language);
/* Its text; `compile`: that of its front matter, or NULL. */
int definition_text(const struct problem *problem, const char *compile, struct buf *text,
                    struct err *err) MUST_USE;
