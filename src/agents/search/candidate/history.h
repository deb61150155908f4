/* agents/search/candidate/history: what a run remembers of what was tried, for its prompts. The
 * store has all of it, whole; here stays what is looked at again, in some two hundred bytes a
 * candidate, and no more than so many of them. Inside src/agents/search. */
#pragma once

#include "agents/prompt/prompt.h"

#include <stddef.h>

struct search;
struct attempt;

struct history {
    struct prompt_attempt *items;
    int *island;
    size_t count, capacity;
    size_t shown; /* as it was when the round began: what its prompts say */
};

void history_add(struct search *search, const struct attempt *attempt); /* it is taken */
void history_round(struct search *search); /* it begins: what is too much is forgotten */
const struct prompt_attempt *history_shown(const struct search *search, size_t *count);
/* What this island has tried (< 0: all of them); mem_free() it. */
struct prompt_attempt *history_of(const struct search *search, int island, size_t *count);
void history_free(struct search *search);
