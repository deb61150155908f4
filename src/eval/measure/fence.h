/* eval/measure/fence: what lies between tensors during a call, and whether it still does after it.
 * Inside src/eval/measure. Worker's measuring thread. */
#pragma once

#include "eval/measure/measure.h"

struct fence {
    unsigned char *base;
    size_t end;                   /* of what is looked at, of outputs */
    const unsigned char *pattern; /* GUARD_BYTES */
    size_t broken;                /* offset of the first wrong byte, when checked */
    bool intact;
};

/* Visits the bytes that belong to no tensor, from *cursor on, in order. */
void fence_gaps(const struct placed *placed, size_t count, size_t *cursor,
                void (*visit)(void *context, size_t from, size_t to), void *context);
void fence_fill(void *context, size_t from, size_t to); /* `context`: a struct fence */
void fence_check(void *context, size_t from, size_t to);
void fence_pattern(unsigned char pattern[GUARD_BYTES]); /* a new one */
