/* agents/search/values: a tune with a model: it proposes points of the best kernel's tune space.
 * Inside src/agents/search. */
#pragma once

#include "agents/llm/ask.h"

#include <stdbool.h>
#include <stdint.h>

struct search;

struct values {
    struct ask ask;
    bool asking;
    int64_t asked;    /* how often */
    int64_t proposed; /* points, when it was asked last */
};

/* All points that may be proposed have been taken: asks for more. False: there are no more. */
bool search_values_step(struct search *search);
int64_t search_values_first(const struct search *search); /* points before it is asked at all */
void search_values_stop(struct search *search);
void search_values_close(struct search *search);
