/* eval/sets/excuse: numbers that are not the definition's, and right all the same. Inside src/eval.
 * Worker's measuring thread. */
#pragma once

#include "eval/sets/sets.h"

/* A few rows, as ties are. Of indices all may be: equal numbers have any order. */
static inline bool set_may_tie(const struct bound *bound, const struct placed *placed,
                               const struct mismatch *mismatch)
{
    bool few = mismatch->bad_count * 16 <= placed->elements || bound->exact_equality;
    return mismatch->bad_count > 0 && few;
}

/* Whether all that is wrong in `got` hangs on a tie: an exact result, too, is another one there
 * when the inputs move by their last bits. excuse.c; integers: ties.c */
bool session_excuses(struct session *session, const struct set *set, size_t output,
                     const void *got);
