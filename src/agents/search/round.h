/* agents/search/round: rounds of ideas from a model. Inside src/agents/search. */
#pragma once

#include "agents/search/run/run.h"

#include <stdbool.h>
#include <stdint.h>

struct search;

struct round {
    struct model_round *now; /* the one under way */
    int64_t next;
    int barren;                          /* in a row, whose requests all failed */
    const char *complaints[ISLANDS_MAX]; /* see model_round */
    bool over;
};

bool search_rounds_step(struct search *search); /* starts what is due; false when all is over */
void search_rounds_stop(struct search *search);
void search_rounds_close(struct search *search);
