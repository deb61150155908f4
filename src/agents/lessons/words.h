/* agents/lessons/words: lessons as prompts and people read them. Pure; any thread. */
#pragma once

#include "agents/lessons/memory.h"

/* "faster, 1.38x its parent (1.31 to 1.45)", with the digits that the interval supports; "faster,
 * 2x to 100x its parent" of a wide one; "failed: does not compile". */
void lesson_outcome(const struct lesson *lesson, struct buf *out);

/* Whether two of the same mechanism, by its words, came out differently: one won, the other lost,
 * failed or made no difference. Points of tune spaces are never compared. */
bool lesson_contradicts(const struct lesson *a, const struct lesson *b);

struct lesson_ask { /* what a prompt is about */
    const struct lesson_place *here;
    const char *limiter;                /* of the parent; "" not known */
    const char *title;                  /* of the idea at hand; NULL: ideas are asked for */
    const struct lesson_memory *memory; /* of earlier runs */
    const struct lesson *taught;        /* of this run's ideas */
    size_t taught_count;
    size_t bytes; /* at most */
};

/* What tells most about that, wins and failures both, those of one idea together: a line each.
 * Nothing where nothing is known. */
void lesson_chapter(const struct lesson_ask *ask, struct buf *out);

/* How `count` ideas are to be spread over the categories, by what paid in this family so far (in
 * earlier runs and in this one) and what could lift the limiter (`lifts`: "memory, parallelism"):
 * one line, or nothing where too little is known. A part of them is left to the model. */
void lesson_quotas(const struct lesson_ask *ask, const char *lifts, int64_t count, struct buf *out);
