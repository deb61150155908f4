/* rag/candidates: the best passages of a ranking, by number, and two rankings made one. For the
 * files of this folder alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct candidate {
    uint32_t number;
    float score;
};

struct candidates {
    struct candidate *items; /* the caller's, of `most`; a min-heap once full */
    size_t count, most;      /* most > 0 */
};

void candidates_take(struct candidates *candidates, struct candidate one);

/* Keeps `one` if it is among the best `most`; called for every passage that a query touches. */
static inline void candidates_offer(struct candidates *candidates, struct candidate one)
{
    if (candidates->count < candidates->most || one.score > candidates->items[0].score)
        candidates_take(candidates, one);
}

/* The best first; equal ones by number. */
void candidates_sort(struct candidates *candidates);

/* Reciprocal ranks: each ranking gives 1 / (60 + rank) (Cormack, Clarke, Buettcher, SIGIR 2009).
 * Both are sorted; the best of both, sorted, in *words. */
void candidates_fuse(struct candidates *words, const struct candidates *others);
