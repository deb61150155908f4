/* agents/search/candidate/recall: what an earlier process of the run left. Inside
 * src/agents/search. */
#pragma once

#include "agents/record/record.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct search;
struct attempt;

struct recall {
    struct candidate_record *items;
    size_t count, capacity;
};

int search_recall(struct search *search, struct err *err) MUST_USE; /* records of options.resume */
void search_recall_free(struct search *search);
/* The next one that an agent had evaluated for this attempt; NULL: no more. *at: 0 at first. */
const struct candidate_record *search_recall_steps(const struct search *search, const char *attempt,
                                                   size_t *at);
/* How many points from number `first` on it tuned beside this round, or was about to. */
int64_t search_recall_tuned(const struct search *search, int64_t first);
void search_recall_candidate(struct attempt *attempt); /* its record, where there is one */
enum recall_result { RECALL_NOTHING, RECALL_ENDED, RECALL_WRITING, RECALL_WRITTEN };
/* Puts a recalled attempt where its record says that it stood. */
enum recall_result search_recall_state(struct attempt *attempt, int *state);
