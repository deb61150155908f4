/* agents/ideas: ideas as a model writes them. Pure; any thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stddef.h>

enum { IDEAS_MAX = 512 }; /* of one answer; --branching goes as far */

struct idea {
    const char *title, *category, *why;
    const char *parent; /* a candidate's id as the model gave it, or "" */
    double expected;    /* hoped-for speed-up over the parent; 0: not said */
};

/* Reads {"ideas": [...]} or a bare list from an answer that may have prose or fences around it. An
 * item without a title is skipped, a category outside the list becomes "compute", white space is
 * folded, long texts are cut; of ideas with the same title (case and punctuation aside) the first
 * stays. At most `most` are kept. ERR_NOT_FOUND or ERR_PARSE, one line for the model, where not a
 * single idea can be read. */
int ideas_parse(struct arena *arena, const char *text, struct idea *ideas, size_t most,
                size_t *count, struct err *err) MUST_USE;

/* JSON schema of the answer, for providers that hold a model to one: every key required, no others.
 */
extern const char ideas_schema[];

/* "memory", "compute", ...: NULL-terminated. */
extern const char *const idea_categories[];
