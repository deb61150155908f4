/* agents/search/candidate/chain: candidates of the built-in proposer, first to last: number k is
 * proposed when exactly those before k - window have been taken. Inside src/agents/search. */
#pragma once

#include "agents/proposer/proposer.h"
#include "loop/work.h"

#include <stdbool.h>
#include <stdint.h>

struct search;

struct chain {
    int64_t first, ideas_first, limit, window;
    int64_t proposed, taken;
    int64_t recalled; /* proposed by an earlier process, those beyond the limit too */
    bool fills, filled, closed;
    bool over, drained, has_proposal, tuning;
    struct proposal proposal;
    struct proposer *proposer;
    struct work work; /* proposer_next() computes for some milliseconds */
};

void chain_more(struct chain *chain, int64_t count); /* beyond its limit, once it is over */

/* Goes on beyond its limit, once all up to there are taken, while `wanted`; what `recalled` says in
 * any case. `closed`: nothing more is wanted of it. True where this began now. */
bool chain_fill(struct chain *chain, bool wanted, bool closed);

/* True while something of it is under way or not yet taken. */
bool chain_step(struct search *search, struct chain *chain);
