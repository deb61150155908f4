/* agents/search/round_private: a round with a model, as round.c and wish.c (what it asks for ideas)
 * share it. Inside src/agents/search. */
#pragma once

#include "agents/search/private.h"

/* What one island is asked for. */
struct idea_request {
    struct ask ask;
    struct retrieval retrieval; /* what its prompt quotes */
    bool retrieving;
    struct buf system, prompt;
    const struct attempt *parents[PARENTS_MAX];
    size_t parent_count;
    char id[64];
    int island;
    int64_t first_idea, count; /* of this round's ideas: its share */
    unsigned shrink;
    int64_t max_tokens, step;
    uint64_t tried;        /* models that failed at this question; see struct draw */
    const char *complaint; /* of its last answer, or NULL */
    bool asked_again, over, failed;
    struct timer timer; /* until it is asked again, where nobody could answer for now */
    bool waits;
    unsigned waited;
    double since_ms; /* of the first of these */
};

struct model_round {
    struct task task;
    struct search *search;
    struct idea_request idea_requests[ISLANDS_MAX];
    size_t idea_request_count;
    struct arena *arena;    /* what its prompts are made of; gone with it */
    int64_t numbers, ideas; /* given out before this round */
    int64_t steps;          /* where the numbers of what agents evaluate begin; 0: there are none */
    bool barren;            /* the round before it was */
    const char **complaints; /* by island: why the last round's request brought nothing, or NULL */
    struct chain chain;
};

/* --- wish.c --- */
void round_wishes_start(struct model_round *round); /* an idea request for each island */
bool round_wishes_ended(struct model_round *round);
bool round_wishes_wait(const struct model_round *round); /* until they can be asked again */
